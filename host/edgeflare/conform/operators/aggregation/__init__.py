"""Operators of which each result is made of several values of one tensor."""
