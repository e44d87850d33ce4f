"""What changes a compressed model: its quantization fitted anew to the original's tensors.

The inputs and outputs of the model keep their quantization, since callers may rely on it. Logits
have the range with the least error of the probabilities: cut off below the runner-up of undecided
inputs as many labels were kept, but the probabilities of the example pair then had an error of
.018, where the unfitted file has .004.
"""
