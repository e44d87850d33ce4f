"""The kernel sets of one device side by side: which of them deviate, and which stands alone."""
