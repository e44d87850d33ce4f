"""Hosts of a fleet that are stood in for by network namespaces, each with a daemon of Ray."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from processes import alive

ROOT = Path(__file__).parents[2]
CLASS = "emulated-builtin"
"""The class of devices that each host offers."""

PORT = 6379
START_SECONDS = 300.0
"""A guard against hangs alone: a daemon takes 8 to 20 seconds to start."""

_RAY_ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    # A host that is lost is noticed within seconds, not half a minute.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}


def why_no_hosts() -> str:
    """Return why hosts cannot be stood in for here; empty where they can."""
    try:
        import ray  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return "Ray is not installed: the extra fleet brings it"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "there is no command ip: Debian's iproute2 brings it"
    name = f"ef{os.getpid()}t"
    made = _ip("netns", "add", name, check=False)
    _ip("netns", "del", name, check=False)
    return "" if made == 0 else "this kernel makes no network namespaces"


@dataclass
class StoodInHost:
    """A host: a network namespace with an address of its own.

    Attributes:
        name: what the fleet calls it.
        namespace: in which all of its processes run.
        address: in the network of the fleet.
        folder: its files, such as what attempts keep.
        environment: of its processes.

    """

    name: str
    namespace: str
    address: str
    folder: Path
    environment: dict[str, str]

    def begin(self, *words: str, **changed: str) -> subprocess.Popen[bytes]:
        """Start a program on the host, its output in a file of the host's folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "said").open("ab") as said:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, *words],
                cwd=ROOT,
                env={**self.environment, **changed},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def edgeflare(self, *words: str | Path, said: Path, **changed: str) -> subprocess.Popen[bytes]:
        """Start a command on the host, its stderr in a file."""
        with said.open("ab") as file:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, sys.executable, "-m", "edgeflare"]
                + [str(word) for word in words],
                cwd=ROOT,
                env={**self.environment, **changed},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )

    def join(self, head: StoodInHost, *, offers: int = 1) -> None:
        """Have the host take part in the cluster, as its head or beside it."""
        role = ["--head", f"--port={PORT}", "--include-dashboard=false"]
        if head is not self:
            role = [f"--address={head.address}:{PORT}"]
        else:
            self._sessions.mkdir(parents=True, exist_ok=True)
            role.append(f"--temp-dir={self._sessions}")
        words = [sys.executable, "-m", "ray.scripts.scripts", "start", *role]
        words += [f"--node-ip-address={self.address}", "--num-cpus=1", "--disable-usage-stats"]
        words += ["--object-store-memory=100000000"]
        words += [f"--resources={json.dumps({CLASS: offers} if offers else {})}"]
        started = self.begin(*words)
        try:
            code = started.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if code:
            raise RuntimeError(f"{self.name}: {(self.folder / 'said').read_text()[-2000:]}")

    @property
    def _sessions(self) -> Path:
        """Where Ray keeps its sockets: the path of one is short, or is refused."""
        return Path(tempfile.gettempdir()) / self.namespace

    def processes(self) -> list[int]:
        """Return what runs on the host."""
        told = subprocess.run(
            ["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=False
        )
        return [pid for pid in map(int, told.stdout.split()) if alive(pid)]

    def running(self, *parts: str) -> list[int]:
        """Return what runs on the host and has all these parts in its command line."""
        return [pid for pid in self.processes() if all(part in command_line(pid) for part in parts)]

    def signal(self, pids: Sequence[int], number: int) -> None:
        """Send a signal to processes that may have ended."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End all that runs on the host, as a loss of power does."""
        deadline = time.monotonic() + 60
        while (left := self.processes()) and time.monotonic() < deadline:
            self.signal(left, signal.SIGKILL)
            time.sleep(0.05)

    def set_link(self, *, up: bool) -> None:
        """Plug the host's cable in, or pull it."""
        _ip("-n", self.namespace, "link", "set", "eth0", "up" if up else "down")

    def remove(self) -> None:
        """End all that runs there, and take the host away."""
        self.kill()
        _ip("netns", "del", self.namespace, check=False)
        shutil.rmtree(self._sessions, ignore_errors=True)


@dataclass
class StoodInFleet:
    """Hosts in one network, the first of which is the head."""

    hosts: list[StoodInHost]
    file: Path

    @property
    def head(self) -> StoodInHost:
        return self.hosts[0]

    @property
    def address(self) -> str:
        return f"{self.head.address}:{PORT}"

    def start(self) -> None:
        """Start the daemons of all hosts."""
        self.head.join(self.head)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda host: host.join(self.head), self.hosts[1:]))


@contextmanager
def stood_in_fleet(folder: Path, count: int, devices: int = 1) -> Iterator[StoodInFleet]:
    """Hosts whose daemons do not run yet; all that they started is ended at the end.

    Args:
        folder: for their files.
        count: how many.
        devices: how many of the class each of them has, by `fleet.toml`.

    """
    mark = f"ef{os.getpid() % 100_000}"
    switch = f"{mark}s"
    # Ray takes a head of the same address in another namespace for one that it would replace.
    network = f"10.77.{os.getpid() % 256}"
    token = os.urandom(32).hex()
    hosts = []
    _ip("netns", "add", switch)
    try:
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for at in range(1, count + 1):
            own = folder / f"host{at}"
            kept = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
            environment = {
                **kept,
                **_RAY_ENVIRONMENT,
                "RAY_AUTH_TOKEN": token,
                "XDG_CACHE_HOME": str(own / "cache"),
            }
            host = StoodInHost(f"host{at}", f"{mark}h{at}", f"{network}.{at}", own, environment)
            hosts.append(host)
            _plug_in(host, switch, at)
        file = folder / "fleet.toml"
        file.write_text(
            "".join(
                f'[hosts.{one.name}]\naddress = "{one.address}"\n'
                f"devices = {{{CLASS} = {devices}}}\n"
                for one in hosts
            )
        )
        yield StoodInFleet(hosts, file)
    finally:
        for host in hosts:
            host.remove()
        _ip("netns", "del", switch, check=False)


def _plug_in(host: StoodInHost, switch: str, at: int) -> None:
    _ip("netns", "add", host.namespace)
    # fmt: off
    _ip("-n", switch, "link", "add", f"port{at}", "type", "veth",
        "peer", "name", "eth0", "netns", host.namespace)
    # fmt: on
    _ip("-n", switch, "link", "set", f"port{at}", "master", "bridge", "up")
    _ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
    for name in ("lo", "eth0"):
        _ip("-n", host.namespace, "link", "set", name, "up")


def _ip(*words: str, check: bool = True) -> int:
    return subprocess.run(["ip", *words], capture_output=True, check=check).returncode


def command_line(pid: int) -> str:
    """Return the words of a process, separated by spaces; empty for one that has ended."""
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return ""
