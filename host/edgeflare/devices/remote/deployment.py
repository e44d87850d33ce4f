"""The agent on devices reached through a shell: put there by its hash, started, and removed."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from edgeflare.devices.bundle.build_bundle import build_bundle
from edgeflare.devices.lease import is_own, is_stale, lease, new_name
from edgeflare.devices.profile import Profile
from edgeflare.devices.remote import on_device
from edgeflare.devices.remote.on_device import RemoteState
from edgeflare.devices.remote.remote_shell import Remote, RemoteError
from edgeflare.devices.transports.transport import Endpoint, Transport, allow_delegate
from edgeflare.devices.transports.transport_registry import cache_of, transport, transports
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.agent_code import package_folder


def install_agent(profile: Profile) -> InstalledAgent:
    """Put the agent on a device, unless it is there; nothing is started.

    Raises:
        UserError: nothing is ever put on such a device, or there is no agent for it.

    """
    with _reach(profile) as remote, lease(remote.device):
        return install(remote, profile, inspect_cache(remote, profile))


def uninstall_agent(profile: Profile) -> str:
    """Remove all that was ever put on a device; return the cache folder, empty if there is none.

    Raises:
        UserError: nothing is ever put on such a device, or an agent runs there for somebody.

    """
    with _reach(profile) as remote, lease(remote.device):
        seen = inspect_cache(remote, profile)
        if not seen.used:
            return ""
        stale = [name for name in seen.traces if is_stale(name)]
        on_device.halt(remote, seen.cache, *stale)
        if running := on_device.running(remote, seen.cache):
            raise UserError(
                f"{remote.place}: {len(running)} of the agents in {seen.cache} run for somebody;"
                " let those runs end first (an agent that nobody uses ends by itself within"
                " minutes)"
            )
        on_device.remove(remote, seen.cache)
        return seen.cache


def _reach(profile: Profile) -> Remote:
    deployment = transport(profile.transport).deployment
    if deployment is None:
        schemes = [
            f"{plugin.scheme.name}://"
            for plugin in transports().values()
            if plugin.deployment and plugin.scheme
        ]
        raise UserError(
            f'device "{profile.name}": nothing is installed on a device of transport ='
            f' "{profile.transport}"; name one that is reached by {" or ".join(schemes)}'
        )
    return deployment.shell(profile)


_LAUNCHER = """\
#!/bin/sh
# Runs the agent with a Python that is on the device.
PYTHONPATH=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH
unset PYTHONHOME
exec "$EDGEFLARE_AGENT_PYTHON" -m edgeflare_agent "$@"
"""

OTHERS_KEPT = 2
"""Payloads that stay beside the one in use, so that going back to another runtime is quick."""

PUSH_BYTES_PER_SECOND = 256 * 1024
"""A slow uplink; a push may take what it takes at this speed, and a look around more."""


@dataclass(frozen=True, slots=True)
class InstalledAgent:
    """An agent's payload in the cache folder of a device.

    Attributes:
        cache: path of that folder.
        sha256: the payload's hash.
        sent_bytes: what had to travel; 0 if it was there.

    """

    cache: str
    sha256: str
    sent_bytes: int


def inspect_cache(remote: Remote, profile: Profile) -> RemoteState:
    """Look at a device and its cache folder.

    Raises:
        UserError: the folder is none that may be used so.

    """
    folder = cache_of(profile) or ""
    parts = folder.split("/")[1:]
    if not folder.isprintable() or len(parts) < 2 or {"", ".", ".."} & set(parts):
        raise UserError(
            f'{profile.source or profile.name}: cache = "{folder}": expected a folder of its own,'
            ' at least two deep and without "..", for example "/home/pi/edgeflare"'
        )
    return on_device.remote_state(remote, folder)


def install(remote: Remote, profile: Profile, seen: RemoteState) -> InstalledAgent:
    """Send the agent, unless it is there.

    Raises:
        UserError: there is none for this machine, or the cache folder is somebody else's.

    """
    with tempfile.TemporaryDirectory(prefix="edgeflare-") as folder:
        if profile.python:
            payload = agent_code(Path(folder))
        else:
            built = build_bundle(target_of(profile, seen.machine), profile.runtime)
            payload = _Payload(built.path, built.sha256)
        if payload.sha256 in seen.payloads:
            return InstalledAgent(seen.cache, payload.sha256, 0)
        sent = _send(remote, seen.cache, payload, profile.upload_timeout_seconds)
    on_device.prune(remote, seen.cache, payload.sha256, OTHERS_KEPT)
    return InstalledAgent(seen.cache, payload.sha256, sent)


def _send(remote: Remote, cache: str, payload: _Payload, upload_seconds: float | None) -> int:
    size = payload.file.stat().st_size
    seconds = upload_seconds or on_device.SHORT_SECONDS + size / PUSH_BYTES_PER_SECOND
    name = new_name()
    on_device.prepare(remote, cache)
    try:
        remote.push(payload.file, f"{cache}/incoming/{name}", seconds)
        on_device.unpack(remote, cache, payload.sha256, name)
    except BaseException:
        with suppress(RemoteError):
            on_device.halt(remote, cache, name)
        raise
    return size


@dataclass(frozen=True, slots=True)
class _Payload:
    """A `.tar.gz` that unpacks to a folder with an executable `agent`.

    Attributes:
        file: where it is.
        sha256: digest of the file, by which it is named on devices.

    """

    file: Path
    sha256: str


def agent_code(folder: Path) -> _Payload:
    """Pack the agent's code, for a device that has a Python with a runtime.

    The same code gives the same file.

    Args:
        folder: where to put the file.

    """
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, "agent", _LAUNCHER.encode(), 0o755)
        for package in ("edgeflare_agent", "edgeflare_protos"):
            root = package_folder(package)
            for path in sorted(root.rglob("*.py")):
                name = f"{package}/{path.relative_to(root).as_posix()}"
                _add(archive, name, path.read_bytes(), 0o644)
    content = gzip.compress(tar.getvalue(), mtime=0)
    file = folder / "agent-code.tar.gz"
    file.write_bytes(content)
    return _Payload(file, hashlib.sha256(content).hexdigest())


def target_of(profile: Profile, machine: str) -> str:
    """Return the bundle's target for a machine, as its kernel names it.

    Raises:
        UserError: there is no bundle for it; says what to do.

    """
    deployment = transport(profile.transport).deployment
    targets = deployment.bundle_targets if deployment else {}
    if machine in targets:
        return targets[machine]
    if machine.startswith(("armv6", "armv7", "armv8")):
        raise UserError(
            f"{profile.name}: a 32-bit system ({machine}), for which there is no bundle:"
            " tflite-runtime 2.14 is the last runtime with wheels for armv7l; install a 64-bit"
            " system, or that runtime in a Python 3.10 or 3.11 there and name it in the profile,"
            ' python = "/home/pi/runtime/bin/python"'
        )
    raise UserError(
        f"{profile.name}: its machine is {machine}, but bundles exist for"
        f" {', '.join(sorted(targets))}" + (f"; {deployment.without_bundle}" if deployment else "")
    )


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))


IDLE_SECONDS = 120
"""An agent that hears nothing for so long ends by itself: its host has died, or left the network,
since one that merely waits renews its lease. One that hears nothing for another reason is simply
started again."""


_HELD: set[str] = set()
"""The runs of this process, of all its devices, whose transports are open."""


class RemoteTransport(Transport):
    """Puts the agent on the device if it is not there, starts it, and tunnels to its port.

    A device is for one campaign at a time. Among those of one user on one host a lease sees to
    that; other hosts and users are known by an agent that runs there for them, and where two begin
    at the same time, or in different folders, their agents give the device's lease to one of them.

    The agent outlives the shell that started it, so a broken link does not end it; it is ended when
    the device is opened again by this process, or by another of this host when this one is no more,
    and else by itself.
    """

    def __init__(self, profile: Profile, remote: Remote) -> None:
        """Prepare; nothing is reached yet.

        Args:
            profile: what is to run.
            remote: the device.

        """
        self._profile = profile
        self._remote = remote
        self._opened = ExitStack()
        # Runs that a lost link kept from being ended; one that was not seen since may still come
        # up, since a shell on the device outlives the link that it was started over.
        self._left: set[str] = set()
        self._agent_end = ""

    def open(self) -> Endpoint:
        """Bring the agent up, and return where it is reached.

        Raises:
            InfrastructureError: the agent does not come up, or the device is in use.

        """
        self._agent_end = ""
        with ExitStack() as stack:
            remote = stack.enter_context(self._remote)
            local = stack.enter_context(lease(self._device()))
            seen = inspect_cache(remote, self._profile)
            ended = [name for name in seen.traces if name in self._left or is_stale(name)]
            on_device.halt(remote, seen.cache, *ended)
            self._left.difference_update(ended)
            if _HELD.intersection(seen.traces):
                raise UserError(
                    f"{remote.place}: two of the devices named are the same one, whose cache folder"
                    f" is {seen.cache}; name it once"
                )
            if not all(name in ended or is_own(name) for name in seen.traces):
                _require_unused(remote, seen.cache)
            installed = install(remote, self._profile, seen)
            if installed.sent_bytes:  # which took a while
                _require_unused(remote, seen.cache)
            name = new_name()
            stack.callback(self._halt, seen.cache, name)
            _HELD.add(name)
            launched = on_device.launch(
                remote,
                seen.cache,
                installed.sha256,
                name,
                self._options(),
                self._profile.python,
                self._profile.start_timeout_seconds,
            )
            port = stack.enter_context(remote.forward(launched.port))
            self._opened = stack.pop_all()
        return Endpoint(f"127.0.0.1:{port}", token=launched.token, local_lease=local)

    def close(self) -> None:
        """End the agent, the tunnel and the link."""
        self._opened.close()

    def failure_reason(self) -> str:
        """Return why the link broke, or how the agent ended."""
        return self._remote.failure_reason() or self._agent_end

    def _halt(self, cache: str, name: str) -> None:
        self._left.add(name)
        _HELD.discard(name)
        with suppress(RemoteError):  # a lost device's agent is ended when it is opened again
            self._agent_end = on_device.halt(self._remote, cache, *self._left)
            self._left.discard(name)

    def _device(self) -> str:
        """Return what tells the device from all others, also from those of the same machine."""
        named = self._profile.agent_device
        return self._remote.device if named is None else f"{self._remote.device} {named}"

    def _options(self) -> list[str]:
        limit, idle = str(self._profile.cache_limit_mib), str(IDLE_SECONDS)
        named = self._profile.agent_device
        # fmt: off
        return [
            "--store-limit-mib", limit, "--exit-when-idle", idle, *allow_delegate(self._profile),
            *(() if named is None else (f"--device={named}",)),
        ]
        # fmt: on


def _require_unused(remote: Remote, cache: str) -> None:
    """Refuse a device on which an agent runs that another process started."""
    for agent in on_device.running(remote, cache):
        if not is_own(agent.name):
            raise InfrastructureError(
                f"{remote.place}: in use by {agent.host or 'another host'} for"
                f" {_duration(agent.seconds)} (its agent there is process {agent.pid}): wait until"
                " that has ended, or name another device; an agent that nobody uses ends by itself"
                f" within {_duration(IDLE_SECONDS)}"
            )


def _duration(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} minutes"
