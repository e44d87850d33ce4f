"""What the inputs of a pair are: one file for each domain."""
