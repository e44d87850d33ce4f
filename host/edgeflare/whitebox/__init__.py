"""The inside of a pair's models: networks as differentiable functions (the extra `whitebox`).

The room within, `baselines`, has neuron coverage as it was published.

In jax, int8 LeNets, ResNet-20 and MLPerf Tiny's keyword model equal XNNPACK in every layer; a
gradient takes .5 ms on LeNet-5, 6 ms on ResNet-20. jax 0.6.2 and torch 2.13 were tried: jaxlib is a
wheel of 85 MB from PyPI, installed in 18 s with 380 MB on disk; torch's for the CPU has 190 MB, an
index of its own and 970 MB on disk, and PyPI's brings CUDA.

Whatever runs a model raises InfrastructureError where a worker process is lost; the docstrings
within leave that out.
"""
