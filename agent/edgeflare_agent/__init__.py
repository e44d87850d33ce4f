"""What runs on the device: a gRPC server, and a worker process for each open model."""

__version__ = "0.1.0"
