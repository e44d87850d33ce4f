"""What is assumed of two models and some inputs that come without a `pair.toml`."""
