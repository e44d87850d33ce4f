"""Models that can be the original or the twin, with their encoders and decoders."""
