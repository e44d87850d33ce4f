"""Inputs that were found with one kernel set, evaluated on all kernel sets of the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.input_space import Input
from edgeflare.core.query import Outcome
from edgeflare.devices.profile import Profile
from edgeflare.replay.past_run import PastRun

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
        profiles: profiles of the kernel sets that take the model.
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


@dataclass(frozen=True, slots=True)
class StoredTrigger:
    """An input on which a kernel set deviates, or did when it was stored.

    Attributes:
        run: name of the run's folder, that of the kernel set.
        image: the file's path in that run directory.
        seed_id: id of the seed that it was found from, which may be the input itself.
        sha256: SHA-256 of the file.
        input: what it holds.
        unmutated: whether it is the seed itself, on which every changed decision counts.

    """

    run: str
    image: str
    seed_id: int
    sha256: str
    input: Input
    unmutated: bool = False


def stored_triggers(runs: Mapping[str, Path]) -> list[StoredTrigger]:
    """Return the deviations of runs, by seed; of equal files of one seed the first.

    What models take beside an input belongs to its seed, so equal files of two seeds are two.

    Args:
        runs: the run directories by the names of their kernel sets.

    Raises:
        UserError: one is no run, or a file is gone or damaged.

    """
    found: dict[tuple[int, str], StoredTrigger] = {}
    for name, path in runs.items():
        past = PastRun.open(path)
        for entry in past.suite:
            past.files(entry)
            stored = past.directory.load_input(entry.image)
            trigger = StoredTrigger(
                name, entry.image, entry.seed_id, entry.sha256, stored, entry.distortion.l2 == 0.0
            )
            found.setdefault((entry.seed_id, entry.sha256), trigger)
    return sorted(found.values(), key=lambda one: (one.seed_id, one.run))
