"""The units that a fleet's work is shared out in: some seeds, for minutes of a device."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.run.seed_ids import SeedIds

UNITS_FOR_EACH_PLACE = 4
"""Units for each device, so that none is idle for long while the last one ends, and what a lost
device loses is a part of its work."""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """What is done in one go on one device.

    Attributes:
        name: of the unit, such as "unit-0003".
        seed_ids: the seeds; None for what belongs to no part of them, such as the screening of all.

    """

    name: str
    seed_ids: SeedIds | None = None

    @property
    def seeds(self) -> int:
        """How many seeds are searched."""
        return 0 if self.seed_ids is None else len(self.seed_ids)


def search_units(seed_ids: SeedIds, places: int, seeds_of_a_unit: int | None) -> list[WorkUnit]:
    """Return the units of a search, in the order of their seeds.

    Args:
        seed_ids: all seeds that are searched.
        places: devices that work at once.
        seeds_of_a_unit: how many seeds a unit has; None for what gives each device a few units.

    """
    ids = list(seed_ids)
    size = seeds_of_a_unit or max(1, -(-len(ids) // (places * UNITS_FOR_EACH_PLACE)))
    return [
        WorkUnit(f"unit-{at:04d}", SeedIds.of(ids[begin : begin + size]))
        for at, begin in enumerate(range(0, len(ids), size))
    ]
