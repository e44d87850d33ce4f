"""The layer table: how far each layer of a compressed model is off, over many inputs."""
