"""A transport for devices with a shell: the agent is deployed, started and reached through it."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from edgeflare.devices.lease import is_own, is_stale, lease, new_name
from edgeflare.devices.profile import Profile
from edgeflare.devices.remote import on_device
from edgeflare.devices.remote.deployment import inspect_cache, install
from edgeflare.devices.remote.remote_shell import Remote, RemoteError
from edgeflare.devices.transports.transport import Endpoint, Transport, allow_delegate
from edgeflare.errors import InfrastructureError, UserError

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
        limit, idle = str(self._profile.cache_limit_mb), str(IDLE_SECONDS)
        named = self._profile.agent_device
        # fmt: off
        return [
            "--store-limit-mb", limit, "--exit-when-idle", idle, *allow_delegate(self._profile),
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
