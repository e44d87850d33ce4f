"""The engine: many chains at once, batches in flight, budgets, journal, verification, resume.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good; the docstrings within leave that out.
"""
