"""After finding: a small network behind the compressed model that mends deviations."""
