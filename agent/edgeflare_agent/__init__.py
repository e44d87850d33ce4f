"""What runs on the device: a gRPC server, and a worker process for each open model."""

from edgeflare_protos import __version__ as __version__
