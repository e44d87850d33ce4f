"""What the outputs of a pair mean: one file for each task."""
