"""Limits for a release: what they are about, and whether what was drawn holds them."""
