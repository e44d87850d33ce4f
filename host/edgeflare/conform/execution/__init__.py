"""Models run by the kernels of a device and of the host, many in one file.

A process takes as long to start as hundreds of models to run, so some hundred models are packed in
a file. Of what is judged as the device's fault, the first models of each cell and round are run
again alone, and an answer that depended on the others is a finding of its own. A pack that gives no
answer is searched by halves of equal odds, where the odds of a model are those of its kind so far.
"""
