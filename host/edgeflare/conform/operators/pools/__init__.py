"""Operators that make one value of each window, without weights."""
