"""The `factbook` command: what an operator runs against a deployed stack, and an auditor against an export."""
