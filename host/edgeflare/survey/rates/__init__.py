"""The rates of a survey: over all, of slices, and between groups."""
