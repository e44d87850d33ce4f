"""Models run by the kernels of a device and of the host, many in one file."""
