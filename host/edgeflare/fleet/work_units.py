"""The units that a fleet's work is shared out in: a command each, for minutes of a device."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edgeflare.run.seed_ids import SeedIds

DEVICE: Final = "\0DEVICE"
"""Stands in place of the device's name. An argument of a program cannot have a NUL, so that no
other word of a command is taken for one of these."""

RUN: Final = "\0RUN"
"""Stands in place of the run directory that an attempt works in."""

RESUME: Final = "\0RESUME"
"""Becomes `--resume` where an attempt goes on with what an earlier one had, and nothing else."""

UNITS_FOR_EACH_PLACE = 4
"""Units for each device, so that none is idle for long while the last one ends, and what a lost
device loses is a part of its work."""

_LONGEST = 100_000
"""Characters of a unit's seeds: Linux takes arguments of at most 131,071."""

SCREENED_SEEDS = 100
"""The fewest seeds that a device evaluates for the screening: beginning to takes as long."""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """What is done in one go on one device.

    Attributes:
        name: name of the unit, such as "unit-0003".
        device_class: class of the device on which it is done.
        command: arguments of `edgeflare`; see `filled_command`.
        seed_ids: the seeds that are searched; None for what searches none.
        backed_up: whether attempts send what they have so far to the head at intervals.

    """

    name: str
    device_class: str
    command: tuple[str, ...]
    seed_ids: SeedIds | None = None
    backed_up: bool = True

    @property
    def seeds(self) -> int:
        """How many seeds are searched."""
        return 0 if self.seed_ids is None else len(self.seed_ids)


def share_out(seed_ids: Sequence[int], size: int) -> list[SeedIds]:
    """Return seeds in parts of one size, in their order; the last part may have fewer.

    So may others whose ids are scattered, since an argument of a command has a limit.
    """
    ids = list(seed_ids)
    parts: list[SeedIds] = []
    for begin in range(0, len(ids), size):
        part = SeedIds.of(ids[begin : begin + size])
        if len(str(part)) > _LONGEST:
            parts += share_out(list(part), -(-len(part) // 2))
        else:
            parts.append(part)
    return parts


def screening_parts(seeds: SeedIds, places: int) -> list[SeedIds]:
    """Return all seeds in one part for each device, or in fewer where these would be small."""
    size = max(SCREENED_SEEDS, -(-len(seeds) // places))
    return share_out(list(seeds), size)


def search_parts(seed_ids: SeedIds, places: int, seeds_of_a_unit: int | None) -> list[SeedIds]:
    """Return the seeds of each unit of a search.

    Args:
        seed_ids: all seeds that are searched.
        places: devices that work at once.
        seeds_of_a_unit: how many seeds a unit has; None for what gives each device a few units.

    """
    size = seeds_of_a_unit or max(1, -(-len(seed_ids) // (places * UNITS_FOR_EACH_PLACE)))
    return share_out(list(seed_ids), size)


def given_run(name: str) -> str:
    """Return the word in place of a run directory that the head gives to attempts."""
    return f"\0{name.upper()}"


def filled_command(command: Sequence[str], words: Mapping[str, str], *, resume: bool) -> list[str]:
    """Return a command as it is run.

    Args:
        command: command of a unit.
        words: what stands for `DEVICE`, `RUN` and what the head gives.
        resume: whether it goes on with what an earlier attempt had.

    """
    told = [words.get(argument, argument) for argument in command if argument != RESUME or resume]
    return ["--resume" if argument == RESUME else argument for argument in told]


def shown_command(command: Sequence[str]) -> str:
    """Return a command as people read it."""
    return shlex.join(argument.replace("\0", "") for argument in command if argument != RESUME)
