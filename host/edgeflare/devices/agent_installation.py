"""Devices that are reached through a shell: the agent put there, or all of it removed."""

from __future__ import annotations

from edgeflare.devices.lease import lease
from edgeflare.devices.profile import Profile
from edgeflare.devices.remote import deployment
from edgeflare.devices.remote.deployment import InstalledAgent
from edgeflare.devices.remote.remote_shell import Remote
from edgeflare.devices.transports.transport_registry import transport, transports
from edgeflare.errors import UserError


def install_agent(profile: Profile) -> InstalledAgent:
    """Put the agent on a device, unless it is there; nothing is started.

    Raises:
        UserError: nothing is ever put on such a device, or there is no agent for it.
        InfrastructureError: the device fails.

    """
    with _reach(profile) as remote, lease(remote.device):
        return deployment.install(remote, profile, deployment.inspect_cache(remote, profile))


def uninstall_agent(profile: Profile) -> str:
    """Remove all that was ever put on a device; return the folder, empty if there was none.

    Raises:
        UserError: nothing is ever put on such a device, or an agent runs there for somebody.
        InfrastructureError: the device fails.

    """
    with _reach(profile) as remote, lease(remote.device):
        return deployment.uninstall(remote, profile)


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
