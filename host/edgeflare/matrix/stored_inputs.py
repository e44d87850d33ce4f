"""The inputs that runs on several kernel sets have stored, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgeflare.core.input_space import Input
from edgeflare.replay.past_run import PastRun


@dataclass(frozen=True, slots=True)
class StoredTrigger:
    """An input on which a kernel set deviates, or did when it was stored.

    Attributes:
        run: name of the run's folder, that of the kernel set.
        image: the file's path in that run directory.
        seed_id: of the seed that it was found from, which may be the input itself.
        sha256: of the file.
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
