"""Conditions of arrays: (time, channels) or (values,), floats or integers.

Changes are in proportion to the spread of an array, the standard deviation of each channel, since
an array does not say its unit. Bounds are the domain's, so the caller enforces them.
"""
