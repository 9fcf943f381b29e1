"""The search indexes. Only functions that search or index are deployed with this package; import the module you use."""
