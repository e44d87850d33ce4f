"""Operators that compute each value of their result from the values at its place."""
