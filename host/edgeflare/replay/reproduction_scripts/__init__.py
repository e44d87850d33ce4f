"""Scripts that `edgeflare export` puts into archives; nothing here imports them.

`reproduce.py` runs a classifier with one input and one output and compares the classes by itself.
All other models are run by `reproduce_tensors.py`, in the archive as `reproduce.py`, with the file
of their task beside it as `outputs.py`, which has three functions: `read` returns what a decoder
reads of a model's tensors, `describe` says it in words, and `compare` tells whether two models
deviate. `reproduce_operator.py` runs the model of one operator, and holds its answers to what is
right.
"""
