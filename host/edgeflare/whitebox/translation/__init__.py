"""Operators as differentiable functions that compute what XNNPACK's kernels compute."""
