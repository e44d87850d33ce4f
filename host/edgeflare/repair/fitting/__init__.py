"""What changes a compressed model: its quantization fitted anew to the original's tensors.

The inputs and outputs of the model keep their quantization, since callers may rely on it. Logits
have the range with the least error of the probabilities: cut off below the runner-up of undecided
inputs as many labels were kept, but the probabilities of the example pair then had an error of
.018, where the unfitted file has .004.

What fits in place returns a file of the same length, with the same operators. It raises UserError
where an operator with weights has no counterpart in the original, constants or quantizations are
shared with something else, or a network does not run. What writes a file anew raises it where
litert-quantizer is not installed, and RewritingFailed where that library makes no file. The
docstrings within leave that out, unless there is more to say.
"""
