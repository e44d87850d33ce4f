"""What changes a compressed model: its quantization fitted anew to the original's tensors."""
