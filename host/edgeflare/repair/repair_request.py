"""What a user asks of a repair."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from edgeflare.repair.cost_limits import CostLimit, latency_limit, size_limit
from edgeflare.repair.repair_candidate import Method, Target
from edgeflare.repair.shifts.shift_candidate import ShiftRequest


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """The settings of a repair.

    Attributes:
        method: one method, or "auto" for all that the limits allow.
        target: what the target computes.
        in_place: whether the file keeps its length and its operators.
        max_size: how much larger the file may be, such as "+1%"; "none" for any size.
        max_latency: how much longer an inference may take on each device; "none" for any time.
        test: file or folder of fresh inputs, or None.
        rng_seed: of the generator of all that is drawn: the parts of the seeds, and the inputs that
            are made of them.
        shifts: the settings of shifts.

    Raises:
        UserError: a limit is none.

    """

    method: Method
    target: Target
    in_place: bool
    max_size: str
    max_latency: str
    test: Path | None
    rng_seed: int = 0
    shifts: ShiftRequest = field(default_factory=ShiftRequest)

    def __post_init__(self) -> None:
        """Refuse limits that cannot be read."""
        _ = self.size_limit, self.latency_limit

    @property
    def size_limit(self) -> CostLimit | None:
        """The limit of the file's size; None for none."""
        return size_limit(self.max_size)

    @property
    def latency_limit(self) -> CostLimit | None:
        """The limit of the time for an inference; None for none."""
        return latency_limit(self.max_latency)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON values; those of shifts are not among them."""
        settings = {one.name: getattr(self, one.name) for one in fields(self)}
        del settings["shifts"]
        return {**settings, "test": None if self.test is None else str(self.test)}
