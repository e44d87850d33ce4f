"""What runs found, tried again: on another device, with another file, beside one another.

The room within: `reproduction_scripts` go into exported archives.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good; the docstrings within leave that out.
"""
