"""What a conformance run has tried and found, on disk."""
