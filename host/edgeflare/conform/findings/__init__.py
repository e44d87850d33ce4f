"""What failing models have in common, and the smallest of them."""
