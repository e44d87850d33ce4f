"""What runs found, tried again: on another device, with another file, beside one another."""
