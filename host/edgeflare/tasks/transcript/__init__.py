"""Texts: what was said, read from the symbols of each step."""
