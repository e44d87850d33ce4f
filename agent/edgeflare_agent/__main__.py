"""`python -m edgeflare_agent`: start the agent, say where it listens, serve until told to stop."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from edgeflare_agent import __version__
from edgeflare_agent.device_lease import LEASE_SECONDS, DeviceLease, DeviceLock
from edgeflare_agent.handlers import MessageInterceptor
from edgeflare_agent.idle import IdleWatch, Stop, wait_until
from edgeflare_agent.model_store import ModelStore, UnsafeFolder
from edgeflare_agent.runtime import RuntimeMissing, end_all_workers, take_fork_server
from edgeflare_agent.security import Refused, Security, TokenInterceptor, read_security
from edgeflare_agent.server import AgentService
from edgeflare_agent.sessions import MAX_SESSIONS, Sessions
from edgeflare_agent.unauthenticated_connections import (
    UNAUTHENTICATED_SECONDS,
    UnauthenticatedConnections,
    WrongTokens,
    connections_within_limit,
)
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR
from edgeflare_protos.agent_pb2_grpc import add_AgentServicer_to_server
from edgeflare_protos.limits import LEAST_LEASE_SECONDS, MOST_LEASE_SECONDS, MOST_STORE_MIB

# An open stream occupies a thread; twice as many and some for short calls never wait for one.
_THREADS = 2 * MAX_SESSIONS + 8

# As many as have a thread; further ones wait at the host. gRPC could bound the calls of all
# connections together, but then those that are refused would take the places of hosts.
_MOST_CALLS_OF_ONE_CONNECTION = _THREADS

# A host that is gone without a word, its network with it, gives back its thread in this time; and
# hosts look after us as often, which gRPC takes for an attack by default.
_PING_SECONDS = 30
_LEAST_SECONDS_BETWEEN_PINGS = 5

# On stopping, calls in flight may end; a batch on its way is seldom longer.
_GRACE_SECONDS = 0.5

# A worker with thousands of threads takes a while to die. All in all less than the 5 seconds after
# which hosts kill an agent that does not end.
_KILL_SECONDS = 2.0


_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

DEVICE_VARIABLE = "EDGEFLARE_AGENT_DEVICE"

_MOST_DESCRIPTOR = 2**20

# A month; who wants it longer wants no limit.
_MOST_IDLE_SECONDS = 31 * 24 * 3600


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent; return its exit code if it does not start, else end this process."""
    options = _parser().parse_args(arguments)
    for number in _STOP_SIGNALS:
        # Until it serves, there is nothing to end in order: the store's lock may be long in coming.
        signal.signal(number, signal.SIG_DFL)
    try:
        security = read_security(
            options.host, options.tls_cert, options.tls_key, options.token_file
        )
        if options.fork_server is not None:
            take_fork_server(options.fork_server)
        store = ModelStore(options.store, options.store_limit_mib * 1024 * 1024)
        sessions = Sessions(store, options.launcher)
        lease = DeviceLease(options.lease_seconds, DeviceLock(options.device))
        service = AgentService(store, sessions, lease, options.allow_delegate, options.system_root)
        watch, tokens = IdleWatch(), WrongTokens()
        server = _server(service, TokenInterceptor(security.token, tokens), watch)
        port = _bind(server, options.host, options.port, security)
    except (Refused, RuntimeMissing, UnsafeFolder) as error:
        return _fail(2, str(error))
    except OSError as error:
        return _fail(3, f"{error.strerror}: {error.filename}" if error.filename else str(error))
    stop = Stop()
    for number in _STOP_SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    server.start()
    if options.exit_with_stdin:
        threading.Thread(target=_watch_stdin, args=(stop,), daemon=True).start()
    _announce(options.host, port)
    wait_until(stop, watch, options.exit_when_idle, UnauthenticatedConnections(port, tokens).look)
    return _end(server)


def _end(server: grpc.Server) -> NoReturn:
    """End the process and its workers in bounded time, whatever they do."""
    stopped = server.stop(_GRACE_SECONDS)
    stopped.wait(_GRACE_SECONDS)
    end_all_workers(_KILL_SECONDS)
    stopped.wait(_GRACE_SECONDS)
    sys.stderr.flush()
    # Returning would wait for the threads of all calls, however long these take.
    os._exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="edgeflare-agent",
        description="Runs models on this device for EdgeFlare. Once it listens it prints one line "
        "of JSON.",
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="numeric address to bind (default: %(default)s)")
    # gRPC would take a larger port modulo 65,536.
    add(
        "--port",
        type=_whole_number(0, 65535),
        default=0,
        help="port to bind (default: any that is free)",
    )
    add(
        "--store",
        type=Path,
        default=_default_store(),
        metavar="DIR",
        help="folder for the models that hosts send (default: %(default)s)",
    )
    add(
        "--store-limit-mib",
        type=_whole_number(1, MOST_STORE_MIB),
        default=512,
        metavar="N",
        help="bound on that folder in MiB (default: %(default)s)",
    )
    add("--tls-cert", type=Path, metavar="FILE", help="certificate chain, PEM")
    add("--tls-key", type=Path, metavar="FILE", help="its private key, PEM")
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file whose first line is the token that hosts must know",
    )
    add("--exit-with-stdin", action="store_true", help="stop when standard input is closed")
    add(
        "--exit-when-idle",
        type=_whole_number(1, _MOST_IDLE_SECONDS),
        metavar="SECONDS",
        help="stop when no host has asked anything for that long",
    )
    _add_device_options(parser)
    add("--version", action="version", version=f"edgeflare-agent {__version__}")
    return parser


def _add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add what depends on how the device is made: its libraries, its Python, its file system."""
    add = parser.add_argument
    add(
        "--device",
        default=os.environ.get(DEVICE_VARIABLE) or "this machine",
        metavar="NAME",
        help="which device of this machine this is: agents that give the same name, and all that "
        f"give none, are for one host at a time (default: ${DEVICE_VARIABLE}, else %(default)s)",
    )
    add(
        "--lease-seconds",
        type=_whole_number(LEAST_LEASE_SECONDS, MOST_LEASE_SECONDS),
        default=LEASE_SECONDS,
        metavar="N",
        help="how long a host that is gone keeps the device from others (default: %(default)s)",
    )
    add(
        "--allow-delegate",
        action="append",
        default=[],
        metavar="LIB",
        help="library that hosts may name as a delegate, exactly so; can be given again",
    )
    add(
        "--launcher",
        type=shlex.split,
        metavar="CMD",
        help="command that starts Python for the workers "
        "(default: $EDGEFLARE_AGENT_LAUNCHER, else this Python)",
    )
    add(
        "--fork-server",
        type=_whole_number(3, _MOST_DESCRIPTOR),
        metavar="FD",
        help="socket of a fork server, from the process that starts this one on the same machine "
        "(default: the workers have a fork server of this agent's own)",
    )
    add(
        "--system-root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="folder under which the device's own /proc and /sys are, for an agent in a container "
        "(default: %(default)s)",
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line; the usage is for --help."""
        self.exit(2, f"{self.prog}: {message}; --help names what there is\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a text; nothing happens where nobody reads it."""
        stream = file or sys.stderr
        with contextlib.suppress(OSError, AttributeError):
            super()._print_message(message, stream)
            stream.flush()
            return
        # Else Python would try again as it ends, and fail at length.
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _whole_number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def _default_store() -> Path:
    """Return a folder that survives a restart where there is a home, and else a temporary one."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME")
    if base is None:
        return Path(tempfile.gettempdir()) / f"edgeflare-{os.getuid()}" / "models"
    cache = Path(base) if "XDG_CACHE_HOME" in os.environ else Path(base) / ".cache"
    return cache / "edgeflare" / "models"


def _server(service: AgentService, tokens: TokenInterceptor, watch: IdleWatch) -> grpc.Server:
    server = grpc.server(
        ThreadPoolExecutor(_THREADS, thread_name_prefix="rpc"),
        # The watch is behind the token: who is turned away is no host.
        interceptors=[tokens, watch, MessageInterceptor()],
        options=[
            ("grpc.max_allowed_incoming_connections", connections_within_limit()),
            ("grpc.server_handshake_timeout_ms", int(UNAUTHENTICATED_SECONDS * 1000)),
            ("grpc.max_concurrent_streams", _MOST_CALLS_OF_ONE_CONNECTION),
            # Two agents on one port would share its calls.
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", _PING_SECONDS * 1000),
            ("grpc.keepalive_timeout_ms", _PING_SECONDS * 1000),
            ("grpc.http2.ping_timeout_ms", _PING_SECONDS * 1000),
            ("grpc.http2.max_pings_without_data", 0),
            (
                "grpc.http2.min_ping_interval_without_data_ms",
                _LEAST_SECONDS_BETWEEN_PINGS * 1000,
            ),
        ],
    )
    add_AgentServicer_to_server(service, server)
    status = health.HealthServicer()
    status.set("", health_pb2.HealthCheckResponse.SERVING)
    status.set("edgeflare.v1.Agent", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    return server


def _bind(server: grpc.Server, host: str, port: int, security: Security) -> int:
    """Bind the port and return its number."""
    numeric = "127.0.0.1" if host == "localhost" else host
    # gRPC does not say why it fails to bind, and logs that at length.
    family = socket.AF_INET6 if ":" in numeric else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((numeric, port))
        except OSError as error:
            raise OSError(f"cannot listen on {numeric} port {port}: {error.strerror}") from None
    address = f"[{numeric}]:{port}" if ":" in numeric else f"{numeric}:{port}"
    try:
        if security.credentials is not None:
            return server.add_secure_port(address, security.credentials)
        return server.add_insecure_port(address)
    except RuntimeError:
        raise OSError(
            f"cannot listen on {address}: certificate and key do not fit, or the port was taken"
        ) from None


def _watch_stdin(stop: Stop) -> None:
    while os.read(0, 4096):
        pass
    stop.set()


def _announce(host: str, port: int) -> None:
    ready = {
        "ready": True,
        "host": host,
        "port": port,
        "pid": os.getpid(),
        "protocol": f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}",
        "agent": __version__,
    }
    if sys.stdout is not None:
        with contextlib.suppress(OSError):  # who started it need not listen
            sys.stdout.write(json.dumps(ready) + "\n")
            sys.stdout.flush()


def _fail(code: int, message: str) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"edgeflare-agent: {message}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
