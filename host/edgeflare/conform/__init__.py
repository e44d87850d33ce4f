"""Whether the kernels of a device compute what operators mean."""
