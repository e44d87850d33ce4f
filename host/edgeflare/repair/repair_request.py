"""What a user asks of a repair."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from edgeflare.record.json_types import Count, CountFromOne
from edgeflare.record.request import Option
from edgeflare.repair.repair_cost import DEFAULT_LIMIT, CostLimit, latency_limit, size_limit

Target = Literal["float", "int8-only"]
"""What the target computes: floats beside integers, or integers alone, as some accelerators do."""


class RepairRequest(msgspec.Struct, frozen=True):
    """What was asked.

    Attributes:
        method: one method, or "auto" for all that the limits allow.
        target: what the target computes.
        in_place: whether the file keeps its length and its operators.
        max_size: growth of the file that is allowed, such as +5%; none for no limit.
        max_latency: growth of the time for an inference that is allowed on each device, such as
            +5%; none for no limit.
        test: path of the fresh inputs, a file or a folder; null for none.
        rng_seed: seed of the generator of all that is drawn: the parts of the seeds, and the inputs
            that are made of them.
        limit: how many seeds of a pair are taken, at most; null for all, and for a run.
        robustness: whether the repaired model and the one before are attacked.
        groups: columns of an attribute that is to decide less; empty where decisions are to be the
            original's.
        checkpoints: paths of checkpoints of a training, of which "dare" learns; empty where it
            learns of the original.
        slice_percent: percent of the synapses of each layer that methods change which slice
            networks; null for what each of them takes.
        steps: batches that "archrepair" trains each candidate with; null for 200.
        suspects: suspicious neurons by which it locates a block; null for 50.
        rounds: searches of "shifts" from each seed for near-boundary inputs; null for 4.

    """

    method: str
    target: Target
    in_place: bool
    max_size: str
    max_latency: str
    test: str | None
    rng_seed: int = 0
    limit: CountFromOne | None = None
    robustness: bool = False
    groups: tuple[Count, ...] = ()
    checkpoints: tuple[str, ...] = ()
    slice_percent: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=100)] | None, Option("--slice")
    ] = None
    steps: CountFromOne | None = None
    suspects: CountFromOne | None = None
    rounds: CountFromOne | None = None

    @property
    def size_limit(self) -> CostLimit | None:
        """The limit of the file's size; None for none.

        Raises:
            UserError: `max_size` is no limit.

        """
        return size_limit(self.max_size)

    @property
    def latency_limit(self) -> CostLimit | None:
        """The limit of the time for an inference; None for none.

        Raises:
            UserError: `max_latency` is no limit.

        """
        return latency_limit(self.max_latency)

    def require_limits(self) -> None:
        """Refuse limits that cannot be read."""
        _ = self.size_limit, self.latency_limit

    @property
    def by_labels(self) -> str | None:
        """What asks for a repair that is judged by labels, such as "--groups"; None for none.

        Of such a repair nothing is stored to go on with.
        """
        if self.groups:
            return "--groups"
        if self.checkpoints:
            return "--checkpoints"
        return self.method if self.method == "archrepair" else None


DEFAULT_REQUEST: Final = RepairRequest(
    "auto", "float", in_place=False, max_size=DEFAULT_LIMIT, max_latency=DEFAULT_LIMIT, test=None
)
"""What is asked where no option is given: all methods, at equal cost."""
