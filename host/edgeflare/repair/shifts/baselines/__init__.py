"""The published repair of decisions, which shifts are compared with."""
