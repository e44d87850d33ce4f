"""LiteRT's CompiledModel, which runs models on accelerators, as a runtime."""
