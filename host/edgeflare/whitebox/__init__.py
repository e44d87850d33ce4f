"""The inside of a pair's models: networks as differentiable functions (the extra `whitebox`)."""
