"""A connection to a Ray cluster, or one of this host alone."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet.cluster.cluster_token import TOKEN, make_token, require_token
from edgeflare.fleet.plan.fleet_file import Fleet

NAMESPACE = "edgeflare"
"""Of Ray, in which the actors of fleets are found by name."""

_ANSWER_SECONDS = 20.0
"""After which a head that does not answer counts as not reached."""

_LARGEST_PORT = 65_535

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
    # What Ray's libraries would say on this terminal; what matters comes as an exception.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if address == LOCAL:
        make_token(os.environ)
    else:
        require_token(os.environ, Path.home())
        _require_answer(address)
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
            # By this name Ray begins a cluster of its own, also where another one runs.
            options |= {"address": LOCAL, "include_dashboard": False, "num_cpus": 1}
            ray.init(resources=resources, **options)
        else:
            ray.init(address=address, **options)
    except RuntimeError as error:
        said = " ".join(str(error).split())
        if "Version mismatch" in said or "version" in said.lower():
            raise UserError(f"{address}: {said}") from None
        raise _not_joined(address, said) from None
    except (ConnectionError, ValueError, ray.exceptions.RayError) as error:
        raise _not_joined(address, " ".join(str(error).split())) from None
    try:
        yield
    finally:
        # A cluster whose head is gone needs no farewell.
        with suppress(ray.exceptions.RayError, ConnectionError, RuntimeError):
            ray.shutdown()


def _require_answer(address: str) -> None:
    """Refuse an address where nobody listens; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > _LARGEST_PORT:
        raise UserError(f"--fleet {address}: expected HOST:PORT of the cluster's head, or local")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise InfrastructureError(f"the cluster {address} is not reached: {why}") from None


def _not_joined(address: str, said: str) -> InfrastructureError:
    return InfrastructureError(
        f"the cluster {address} is not reached: {said[:300]}; somebody listens there, so see"
        f" whether the token of this host is that of the head ({TOKEN})"
        if address != LOCAL
        else f"no cluster of this host begins: {said[:300]}"
    )


def _ray() -> Any:
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise UserError(
            "--fleet needs Ray, which is not installed: pip install 'edgeflare[fleet]'"
        ) from None
    return ray
