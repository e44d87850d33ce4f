"""The kernel sets of one device side by side: which of them deviate, and which stands alone.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good; the docstrings within leave that out.
"""
