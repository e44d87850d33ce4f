"""After finding: boundaries of a compressed model moved back, where a run shows that it helps."""
