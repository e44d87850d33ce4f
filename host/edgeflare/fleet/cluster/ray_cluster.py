"""A connection to a Ray cluster, or one of this host alone."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet.cluster.cluster_token import make_token, require_token
from edgeflare.fleet.plan.fleet_file import Fleet

NAMESPACE = "edgeflare"
"""Of Ray, in which the actors of fleets are found by name."""

_CONNECT_SECONDS = 10.0
"""The longest that the head of a cluster may take to answer."""

LOCAL = "local"
"""In place of an address: a cluster of this host alone, for as long as the command runs."""


@contextmanager
def cluster(address: str, fleet: Fleet) -> Iterator[None]:
    """Be connected to a cluster.

    Args:
        address: HOST:PORT of its head, or `LOCAL`.
        fleet: whose devices are the resources of a local cluster.

    Raises:
        UserError: Ray is not installed, there is no token, or a version differs.
        InfrastructureError: the cluster is not reached.

    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    if address == LOCAL:
        make_token(os.environ)
    else:
        require_token(os.environ, Path.home())
        _require_reached(address)
    ray = _ray()
    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "namespace": NAMESPACE,
    }
    try:
        if address == LOCAL:
            resources = {
                name: len(devices) for host in fleet.hosts for name, devices in host.devices.items()
            }
            ray.init(include_dashboard=False, resources=resources, num_cpus=1, **options)
        else:
            ray.init(address=address, **options)
    except RuntimeError as error:
        said = " ".join(str(error).split())
        if "Version mismatch" in said or "version" in said.lower():
            raise UserError(f"{address}: {said}") from None
        raise InfrastructureError(f"the cluster {address} is not reached: {said}") from None
    except (ConnectionError, ValueError) as error:
        raise InfrastructureError(f"the cluster {address} is not reached: {error}") from None
    try:
        yield
    finally:
        ray.shutdown()


def _require_reached(address: str) -> None:
    """Refuse an address at which nobody listens; Ray would try for minutes.

    Raises:
        UserError: it is none.
        InfrastructureError: nobody listens there.

    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"--fleet {address}: expected HOST:PORT of the cluster's head, or local")
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        raise InfrastructureError(
            f"the cluster {address} is not reached ({error.strerror or error}): start its head with"
            " `ray start --head` (docs/fleet.md)"
        ) from None


def _ray() -> Any:
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise UserError(
            "--fleet needs Ray, which is not installed: pip install 'edgeflare[fleet]'"
        ) from None
    return ray
