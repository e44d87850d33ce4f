"""A profile's delegate, as its agent is told of it."""

from __future__ import annotations

from edgeflare.devices.profile import Profile


def allow_delegate(profile: Profile) -> list[str]:
    """Return the agent's options that let hosts name the profile's delegate, and no other."""
    return [] if profile.delegate is None else ["--allow-delegate", profile.delegate]
