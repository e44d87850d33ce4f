"""Operators that move data, and compute nothing."""
