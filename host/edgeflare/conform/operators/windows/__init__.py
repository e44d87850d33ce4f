"""Windows that slide over tensors: convolutions and pools have them."""
