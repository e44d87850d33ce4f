"""Models that can be the original or the twin, and what stands between pixels and labels."""
