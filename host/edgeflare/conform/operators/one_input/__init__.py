"""Operators that are given one tensor: reductions, softmax, normalizations, resizing, ordering."""
