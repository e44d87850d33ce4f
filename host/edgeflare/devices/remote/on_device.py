"""What a host does on a device, each as one call of `on_device.sh`."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from edgeflare.devices.remote.remote_shell import Remote, RemoteCommandFailed
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.outside_text import json_value

SHORT_SECONDS = 20.0
"""Seconds for what looks around: milliseconds of work, the rest for a link slow to wake."""

UNPACK_SECONDS = 300.0
"""Seconds to unpack: 150 MB written to a slow SD card."""

HALT_SECONDS = 30.0
"""Seconds to end each agent: one that does not heed is killed after 5 s, given up after 20 s."""

READY_SECONDS = 60
"""Seconds from launch to ready line: 1 s on a board, 4 s under QEMU, 15 s from a cold SD card."""


@dataclass(frozen=True, slots=True)
class RemoteState:
    """What a device is, and what is in its cache folder.

    Attributes:
        machine: architecture as the kernel names it to its programs: "armv8l" where these are of 32
            bits and the kernel of 64.
        cache: the absolute path of the cache folder.
        used: whether there is such a folder.
        payloads: the agents that are there, by sha256.
        traces: names that hosts gave to what they started or began to send.

    """

    machine: str
    cache: str
    used: bool
    payloads: frozenset[str]
    traces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchedAgent:
    """An agent that runs on a device.

    Attributes:
        port: where it listens, on the device's loopback.
        token: what it wants to be shown.

    """

    port: int
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ActiveAgent:
    """An agent that runs on a device, as the device tells it.

    Attributes:
        name: what its host called the run.
        pid: process id on the device.
        seconds: how long ago it was started, by the device's clock.
        host: what people call its host; empty if that did not say.

    """

    name: str
    pid: int
    seconds: int = field(compare=False)
    host: str


def remote_state(remote: Remote, folder: str) -> RemoteState:
    """Look at a device; a folder that begins with `~/` is in its home.

    Raises:
        UserError: the folder belongs to another user there, or every user may write to it.

    """
    said = _call(remote, SHORT_SECONDS, "survey", folder)
    machine, where = said.get("machine", [""])[0], said.get("cache", [""])[0]
    if not machine or not where.startswith("/"):
        raise InfrastructureError(
            f"{remote.place}: its shell does not answer as expected; `uname -m` and `echo $HOME`"
            " must work there"
        )
    if "unsafe" in said:
        raise UserError(
            f"{remote.place}: {where} belongs to another user there, or every user may write to it,"
            " who could put an agent of theirs into it; remove it, or name another folder in the"
            " profile, as cache"
        )
    if machine in {"aarch64", "arm64"} and said.get("bits") == ["32"]:
        machine = "armv8l"
    payloads = frozenset(said.get("payload", []))
    traces = tuple(sorted(set(said.get("trace", []))))
    return RemoteState(machine, where, "used" in said, payloads, traces)


def prepare(remote: Remote, cache: str) -> None:
    """Make the cache folder, unless it is there.

    Raises:
        UserError: there is a folder of that name that holds other things.

    """
    if "foreign" in _call(remote, SHORT_SECONDS, "prepare", cache):
        raise UserError(
            f"{remote.place}: {cache} holds other things than EdgeFlare's; name a folder of its"
            " own in the profile, as cache"
        )


def unpack(remote: Remote, cache: str, sha256: str, name: str) -> None:
    """Check what was pushed to `incoming/NAME`, and make it a payload."""
    _call(remote, UNPACK_SECONDS, "unpack", cache, sha256, name)


def prune(remote: Remote, cache: str, sha256: str, count: int) -> None:
    """Remove payloads that nobody runs, but this one and the `count` used last."""
    _call(remote, SHORT_SECONDS, "prune", cache, sha256, str(count))


def launch(
    remote: Remote,
    cache: str,
    sha256: str,
    name: str,
    options: Sequence[str],
    python: str | None = None,
    start_seconds: int | None = None,
) -> LaunchedAgent:
    """Start an agent that outlives the shell, and wait until it is ready.

    Args:
        remote: the device.
        cache: cache folder of the device.
        sha256: the payload that holds the agent.
        name: what the run is called.
        options: the agent's options, beside those for address, store and token.
        python: the Python on the device that runs it, where the payload brings none.
        start_seconds: time that it may take to start; None for READY_SECONDS.

    """
    prefix = "" if python is None else f"export EDGEFLARE_AGENT_PYTHON={shlex.quote(python)}"
    seconds = start_seconds or READY_SECONDS
    arguments = (cache, sha256, name, platform.node(), str(seconds), *options)
    said = _call(remote, seconds + SHORT_SECONDS, "launch", *arguments, prefix=prefix)
    if "failed" in said:
        words = f"; it said: {said['said'][0]}" if "said" in said else ""
        raise InfrastructureError(
            f"{remote.place}: the agent did not start: it {' '.join(['failed', *said['failed']])}"
            f"{words}"
        )
    try:
        return LaunchedAgent(int(json_value(said["ready"][0])["port"]), said["token"][0])
    except (ValueError, KeyError, TypeError, IndexError):
        raise InfrastructureError(
            f"{remote.place}: the agent printed {said.get('ready')} where its ready line was"
            " expected"
        ) from None


def halt(remote: Remote, cache: str, *names: str) -> str:
    """End agents and remove their traces; return what is known of one that was gone already.

    Raises:
        RemoteCommandFailed: one does not end.

    """
    if not names:
        return ""
    calls = "\n".join(shlex.join(["halt", cache, name]) for name in names)
    said = _run(remote, HALT_SECONDS * len(names), calls, "halt")
    if "stuck" in said:
        raise RemoteCommandFailed(
            f"{remote.place}: an agent there (process {said['stuck'][0]}) does not end, not even"
            " when killed; start the device anew",
            "halt",
        )
    if "gone" not in said:
        return ""
    return "its process had ended" + "".join(f"; it said: {line}" for line in said.get("said", []))


def running(remote: Remote, cache: str) -> list[ActiveAgent]:
    """Return the agents that run."""
    found = []
    for line in _call(remote, SHORT_SECONDS, "running", cache).get("run", []):
        name, pid, seconds, host = [*line.split(" ", 3), ""][:4]
        found.append(ActiveAgent(name, int(pid), max(0, int(seconds)), host))
    return found


def remove(remote: Remote, cache: str) -> None:
    """Remove all that was put into the cache folder, and the folder if nothing else is there."""
    _call(remote, UNPACK_SECONDS, "remove", cache)


def _call(
    remote: Remote, seconds: float, function: str, *arguments: str, prefix: str = ""
) -> dict[str, list[str]]:
    return _run(remote, seconds, f"{prefix}\n{shlex.join([function, *arguments])}", function)


def _run(remote: Remote, seconds: float, calls: str, command: str) -> dict[str, list[str]]:
    """Return the lines that the functions printed, by their first words."""
    output = remote.run(f"{_functions()}\n{calls}\n", seconds, command)
    if output.exit_code:
        text = output.stderr.strip() or output.stdout.strip()
        reason = text.splitlines()[-1] if text else f"exit code {output.exit_code}"
        raise RemoteCommandFailed(
            f"{remote.place}: {command} failed there: {reason}", command, text, output.exit_code
        )
    said: dict[str, list[str]] = {}
    for line in output.stdout.splitlines():
        word, _, rest = line.partition(" ")
        said.setdefault(word, []).append(rest)
    return said


@cache
def _functions() -> str:
    """Return the shell's functions, without the comments, which would travel each time."""
    text = (Path(__file__).parent / "on_device.sh").read_text(encoding="ascii")
    return "".join(
        f"{line.lstrip()}\n" for line in text.splitlines() if not line.lstrip().startswith("#")
    )
