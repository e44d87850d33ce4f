"""A connection to a Ray cluster, or one of this host alone."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import socket
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet.fleet_file import Fleet
from edgeflare.stderr_diversion import diverted_stderr

MODE: Final = "RAY_AUTH_MODE"
TOKEN: Final = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_PATH: Final = "RAY_AUTH_TOKEN_PATH"  # noqa: S105 - likewise


NAMESPACE = "edgeflare"
"""Ray's namespace, in which the actors of fleets are found by name."""

_ANSWER_SECONDS = 20.0
"""Time in which a head has to answer to count as reached."""

_LEAVE_SECONDS = 15.0
"""Time that leaving a cluster may take; then it is left without its consent."""

_LARGEST_PORT = 65_535

LOCAL = "local"
"""Stands in place of an address for a cluster of this host alone, which ends with the command."""


@contextmanager
def cluster(address: str, fleet: Fleet) -> Iterator[None]:
    """Be connected to a cluster.

    Args:
        address: HOST:PORT of its head, or `LOCAL`.
        fleet: the fleet, whose devices are the resources of a local cluster.

    Raises:
        UserError: Ray is not installed, there is no token, or a version differs.

    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    # After which Ray ends this process where the head is gone, with exit code 1: we see it before.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "600")
    if address == LOCAL:
        make_token(os.environ)
    else:
        require_token(os.environ, Path.home())
        require_answer(address)
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise UserError(
            "--fleet needs Ray, which is not installed: pip install 'edgeflare[fleet]'"
        ) from None
    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "namespace": NAMESPACE,
    }
    try:
        with diverted_stderr():  # errors come as exceptions
            _join(ray, address, fleet, options)
    except RuntimeError as error:
        said = " ".join(str(error).split())
        if "version mismatch" in said.lower():
            raise UserError(f"{address}: {said}") from None
        raise _not_joined(address, said) from None
    except Exception as error:  # which Ray raises as such where its daemon is slow to start
        raise _not_joined(address, " ".join(str(error).split())) from None
    try:
        yield
    finally:
        with diverted_stderr():
            _leave(ray)


def _leave(ray: Any) -> None:
    """Leave the cluster; where its head is gone, Ray would say farewell to it for minutes."""

    def leave() -> None:
        with suppress(ray.exceptions.RayError, ConnectionError, RuntimeError):
            ray.shutdown()

    leaving = threading.Thread(target=leave, daemon=True)
    leaving.start()
    leaving.join(_LEAVE_SECONDS)
    if leaving.is_alive():
        atexit.unregister(ray.shutdown)  # which would wait for it again


def _join(ray: Any, address: str, fleet: Fleet, options: dict[str, Any]) -> None:
    if address == LOCAL:
        resources = {
            name: len(devices) for host in fleet.hosts for name, devices in host.devices.items()
        }
        # By this name Ray begins a cluster of its own, also where another one runs.
        options |= {"address": LOCAL, "include_dashboard": False, "num_cpus": 1}
        ray.init(resources=resources, **options)
    else:
        ray.init(address=address, **options)


def require_answer(address: str) -> None:
    """Refuse the address of a head where nobody listens; Ray itself would try for minutes.

    Raises:
        UserError: it is no address.
        InfrastructureError: nobody listens there.

    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > _LARGEST_PORT:
        raise UserError(f"--fleet {address}: expected HOST:PORT of the cluster's head, or local")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except UnicodeError:
        raise UserError(f"--fleet {address}: expected HOST:PORT of the cluster's head") from None
    except OSError as error:
        raise InfrastructureError(
            f"the cluster {address} is not reached ({error.strerror or error}): start its head with"
            " `ray start --head` (docs/fleet.md)"
        ) from None


def _not_joined(address: str, said: str) -> InfrastructureError:
    return InfrastructureError(
        f"the cluster {address} is not reached: {said[:300]}; somebody listens there, so see"
        f" whether the token of this host is that of the head ({TOKEN}, or"
        " ~/.ray/auth_token)"
        if address != LOCAL
        else f"no cluster of this host begins: {said[:300]}"
    )


def require_token(environment: MutableMapping[str, str], home: Path) -> None:
    """Refuse to work in a cluster that anybody may take part in.

    Args:
        environment: environment of this process, which Ray reads.
        home: the folder of the user, which may hold `.ray/auth_token`.

    """
    if environment.get(MODE) != "token":
        raise UserError(
            f"a fleet works with token authentication only: set {MODE}=token here and wherever"
            " `ray start` runs, and the same token on each host (docs/fleet.md)"
        )
    file = Path(environment.get(TOKEN_PATH) or home / ".ray" / "auth_token")
    if not environment.get(TOKEN) and not (file.is_file() and file.read_bytes().strip()):
        raise UserError(
            f"there is no token for the cluster: put one into {file}, the same on each host, with"
            f" `ray get-auth-token --generate`, or set {TOKEN}"
        )


def make_token(environment: MutableMapping[str, str]) -> None:
    """Set a new token for a cluster of this process alone."""
    environment[MODE] = "token"
    environment[TOKEN] = secrets.token_hex(32)
    environment.pop(TOKEN_PATH, None)
