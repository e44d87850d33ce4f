"""The rates of a survey: over all, of slices, between groups, and against a baseline."""
