"""Choosing among compressed models of one original, by how hard it is to make them deviate.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good; the docstrings within leave that out.
"""
