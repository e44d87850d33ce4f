"""The systematic differences of two arms as a run's document has them, and orders in words."""

from __future__ import annotations

import msgspec

Number = int | float

_SHOWN = 6
"""Pairs of an order that are written out."""


class OtherOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Outputs, values or classes that one side has in another order than the other.

    Attributes:
        first: whose order it is held against: an arm, or "labels".
        second: the arm that has the other order; the twin where twin and device have it.
        what: "outputs", "classes" or "values".
        head: the output, of a model with several heads; else empty.
        moved: what is elsewhere: its name on the first side, and what the second has in its place.
        before: share of the seeds on which the two agree as they are numbered.
        after: likewise in the other order.
        seeds: how many seeds that was tested on.

    """

    first: str
    second: str
    what: str
    head: str
    moved: tuple[tuple[str, ...], ...]
    before: Number
    after: Number
    seeds: int

    def __str__(self) -> str:
        pairs = ", ".join(f"({one} → {other})" for one, other in self.moved[:_SHOWN])
        more = "" if len(self.moved) <= _SHOWN else f" and {len(self.moved) - _SHOWN} more"
        where = f" of {self.head}" if self.head else ""
        whose = "the compressed model's" if self.second == "twin" else f"the {self.second}'s"
        theirs = "the labels'" if self.first == "labels" else f"the {self.first}'s"
        if self.what == "outputs" and len(self.moved) == 1:
            ((one, other),) = self.moved
            return (
                f"{whose} output {other} is {theirs} {one}; agreement as named {self.before:.0%}, "
                f"with that {self.after:.0%}"
            )
        swapped = self.what == "outputs" and len(self.moved) == 2
        how = "swapped" if swapped else "mapped"
        order = f"swapped against {theirs}" if swapped else f"{theirs} in another order"
        return (
            f"{whose} {self.what}{where} are {order}: {pairs}{more}; agreement as "
            f"{'named' if self.what == 'outputs' else 'numbered'} {self.before:.0%}, {how} "
            f"{self.after:.0%}"
        )


class ClassFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A class that seeds leave on the second arm, or come to, one-sidedly; see `one_sided.Flow`."""

    head: str
    name: str
    left: int
    came: int
    p: Number


class ScoreShift(msgspec.Struct, frozen=True, kw_only=True):
    """A lower or higher score of what is decided; see `one_sided.Shift`.

    Attributes:
        head: the output, of a model with several heads; else empty.
        score: what it is.

    """

    head: str
    score: str
    lower: int
    higher: int
    median: Number
    low: Number
    high: Number
    p: Number


class ClippedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A side of an output on which the device cuts off values; see `saturation.Saturation`."""

    output: str
    side: str
    end: Number
    share: Number
    values: int
    of: int


class SystematicDifferences(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in the same way on many seeds; what is not significant is left out.

    Attributes:
        first: the arm that the other one is held against.
        second: the other one of the compared arms.
        orders: outputs, values or classes in another order. Where an arm has one, the others mean
            nothing and are left out; an order of the labels changes none of them.
        flows: classes with a one-sided flow.
        shifts: decisions whose score moved one-sidedly.
        clipped: outputs that are cut off.

    """

    first: str
    second: str
    orders: tuple[OtherOrder, ...]
    flows: tuple[ClassFlow, ...]
    shifts: tuple[ScoreShift, ...]
    clipped: tuple[ClippedOutput, ...]

    def __bool__(self) -> bool:
        return bool(self.orders or self.flows or self.shifts or self.clipped)


def order_warnings(found: SystematicDifferences | None) -> list[str]:
    """Return a line for each other order."""
    return [] if found is None else [str(order) for order in found.orders]
