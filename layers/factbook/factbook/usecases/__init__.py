"""What Factbook does, one verb phrase each, over ports."""
