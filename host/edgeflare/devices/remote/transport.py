"""The transports "ssh" and "adb": an agent deployed, started and reached through a shell."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from edgeflare.devices.lease import lease
from edgeflare.devices.profile import Profile
from edgeflare.devices.remote import on_device
from edgeflare.devices.remote.deployment import install, look
from edgeflare.devices.remote.names import is_stale, new_name
from edgeflare.devices.remote.remote import Remote, RemoteError
from edgeflare.devices.transports.delegate import allow_delegate
from edgeflare.devices.transports.transport import Endpoint, Transport

IDLE_SECONDS = 1800
"""An agent that hears nothing for so long ends by itself: its host has died, or left the network.
One that was idle this long for a good reason is simply started again."""


class RemoteTransport(Transport):
    """Puts the agent on the device if it is not there, starts it, and tunnels to its port.

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
        self._agents_words = ""

    def open(self) -> Endpoint:
        """Bring the agent up, and return where it is reached."""
        self._agents_words = ""
        with ExitStack() as stack:
            remote = stack.enter_context(self._remote)
            stack.enter_context(lease(remote.device))
            seen = look(remote, self._profile)
            ended = [name for name in seen.traces if name in self._left or is_stale(name)]
            on_device.halt(remote, seen.cache, *ended)
            self._left.difference_update(ended)
            installed = install(remote, self._profile, seen)
            name = new_name()
            stack.callback(self._halt, seen.cache, name)
            launched = on_device.launch(
                remote, seen.cache, installed.sha256, name, self._options(), self._profile.python
            )
            port = stack.enter_context(remote.forward(launched.port))
            self._opened = stack.pop_all()
        return Endpoint(f"127.0.0.1:{port}", token=launched.token)

    def close(self) -> None:
        """End the agent, the tunnel and the link."""
        self._opened.close()

    def last_words(self) -> str:
        """Return why the link broke, or how the agent ended."""
        return self._remote.last_words() or self._agents_words

    def _halt(self, cache: str, name: str) -> None:
        self._left.add(name)
        with suppress(RemoteError):  # a lost device's agent is ended when it is opened again
            self._agents_words = on_device.halt(self._remote, cache, *self._left)
            self._left.discard(name)

    def _options(self) -> list[str]:
        limit, idle = str(self._profile.cache_limit_mb), str(IDLE_SECONDS)
        # fmt: off
        return [
            "--store-limit-mb", limit, "--exit-when-idle", idle, *allow_delegate(self._profile),
        ]
        # fmt: on
