"""Operators that add products of a tensor and weights, the same in all types."""
