"""Inputs that were found with one kernel set, evaluated on all kernel sets of the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.core.outcome import Outcome
from edgeflare.devices.profile import Profile
from edgeflare.matrix.stored_inputs import StoredTrigger

Open = Callable[[Profile, ExitStack], OpenedPair]
"""Opens the pair on a device, for as long as the stack lasts."""


def evaluate_on_each(
    profiles: Sequence[Profile],
    triggers: Sequence[StoredTrigger],
    opened_on: Open,
    stopped: Callable[[], bool],
) -> dict[str, list[Outcome]] | None:
    """Evaluate inputs on each kernel set, with the arms that a search would compare.

    Args:
        profiles: of the kernel sets that take the model.
        triggers: the inputs.
        opened_on: opens the pair.
        stopped: whether the user wants to stop.

    Returns:
        By kernel set, one for each input; None if it was stopped before all were evaluated.

    Raises:
        UserError: as opening raises it.
        InfrastructureError: a device or a worker process is lost for good.

    """
    inputs = [one.input for one in triggers]
    seed_ids = [one.seed_id for one in triggers]
    outcomes: dict[str, list[Outcome]] = {profile.kernels: [] for profile in profiles}
    for profile in profiles if triggers else ():
        with ExitStack() as stack:
            opened = opened_on(profile, stack)
            arms = tuple(opened.panel.arms)
            evaluated = opened.evaluate(inputs, seed_ids, arms, stopped)
            outcomes[profile.kernels] = [one.outcome for one in evaluated]
        if len(outcomes[profile.kernels]) < len(inputs):
            return None
    return outcomes
