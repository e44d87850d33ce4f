"""The same command on each kernel set of a device, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from edgeflare.campaign.pair_panel import RefusedByDevice
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError

Result_co = TypeVar("Result_co", covariant=True)
"""What a run on one kernel set returns."""


class RunStopped(Exception):  # noqa: N818 - a wish of the user's, no mistake
    """The user stopped the run of a kernel set, so that no other begins."""


@dataclass(frozen=True, slots=True)
class KernelSetRun(Generic[Result_co]):
    """What became of one kernel set.

    Attributes:
        profile: the device with that kernel set.
        result: what the run came to; None where the device refuses the model with these kernels.
        refused: why it does, in one line; empty where it does not.

    """

    profile: Profile
    result: Result_co | None = None
    refused: str = ""


def run_on_each(
    profiles: Sequence[Profile], run: Callable[[Profile], Result_co]
) -> list[KernelSetRun[Result_co]]:
    """Run something on each kernel set of a device.

    Args:
        profiles: as `kernel_set_devices` returns them.
        run: the run.

    Raises:
        RunStopped: as the run raises it.
        UserError: all kernel sets refuse the model, or as the run raises it.
        InfrastructureError: as the run raises it.

    """
    done: list[KernelSetRun[Result_co]] = []
    for profile in profiles:
        try:
            done.append(KernelSetRun(profile, run(profile)))
        except RefusedByDevice as refused:
            done.append(KernelSetRun(profile, refused=str(refused)))
    if all(one.refused for one in done):
        raise UserError(f"no kernel set takes the model; the first of them: {done[0].refused}")
    return done
