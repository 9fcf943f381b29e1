"""What only searching functions carry: the index adapters and the libraries they need. Import the module you use."""
