"""Comparison of strategies: many campaigns over the same pairs, with intervals of their figures.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good; the docstrings within leave that out.
"""
