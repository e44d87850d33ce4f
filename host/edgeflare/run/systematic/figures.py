"""The systematic differences of two arms as a run's document has them, and orders in words."""

from __future__ import annotations

from typing import Literal

import msgspec

from edgeflare.core.query import Arm
from edgeflare.record.json_types import Count, Number, ShareAsWritten, TwoNames

_SHOWN = 6
"""Pairs of an order that are written out."""


class OtherOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Outputs, values or classes that one side has in another order than the other.

    Attributes:
        first: the side that the order is held against: an arm, or labels.
        second: the arm that has another order; the twin where twin and device have it.
        what: what is elsewhere.
        head: the output, of a model with several heads; else empty.
        moved: names on the first side, each with the name in whose place the second has it.
        before: share of the seeds on which the two agree as they are numbered.
        after: likewise in the other order, which was fitted without the seeds that it is judged on.
        seeds: how many seeds that was tested on.

    """

    first: str
    second: str
    what: Literal["outputs", "classes", "values"]
    head: str
    moved: tuple[TwoNames, ...]
    before: ShareAsWritten
    after: ShareAsWritten
    seeds: Count

    def __str__(self) -> str:
        pairs = ", ".join(f"({first} → {other})" for first, other in self.moved[:_SHOWN])
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
    """A class that seeds leave on the second arm, or come to, one-sidedly.

    Attributes:
        head: the output, of a model with several heads; else empty.
        name: the class.
        left: seeds in which it has fewer places on the second arm.
        came: seeds in which it has more.
        p_corrected: p-value of the sign test, after Holm's correction for the classes of all heads.

    """

    head: str
    name: str
    left: Count
    came: Count
    p_corrected: ShareAsWritten


class ScoreShift(msgspec.Struct, frozen=True, kw_only=True):
    """A score of decisions that the second arm gives lower, or higher.

    Attributes:
        head: the output, of a model with several heads; else empty.
        score: what it is.
        lower: seeds on which the second arm gives it lower.
        higher: seeds on which it gives it higher.
        median: median of the differences, the second arm's less the first's.
        low: lower end of the median's interval of 95 %.
        high: upper end of that interval.
        p_corrected: p-value of the sign test, after Holm's correction for the scores of all heads.

    """

    head: str
    score: str
    lower: Count
    higher: Count
    median: Number
    low: Number
    high: Number
    p_corrected: ShareAsWritten


class ClippedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A side of an output on which the second arm cuts values off.

    Attributes:
        output: name of the output.
        side: end of the range at which they are cut off.
        end: the end of the second arm's range.
        share: share of the first arm's values that lie beyond it by more than a step.
        values: positions that are beyond it on at least half of the seeds.
        positions: positions in all.

    """

    output: str
    side: Literal["low", "high"]
    end: Number
    share: ShareAsWritten
    values: Count
    positions: Count


class SystematicDifferences(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in the same way on many seeds; what is not significant is left out.

    Attributes:
        first: the arm that the other one is held against.
        second: the other one of the compared arms.
        orders: outputs, classes or values that one side has in another order. With one between two
            arms, the other lists are empty; an order of the labels changes none of them.
        flows: classes with a one-sided flow, from the first arm to the second.
        shifts: scores of decisions that the second arm gives lower, or higher: the mean over both
            arms' decisions.
        clipped: sides of outputs on which the second arm cuts values off.

    """

    first: Arm
    second: Arm
    orders: tuple[OtherOrder, ...]
    flows: tuple[ClassFlow, ...]
    shifts: tuple[ScoreShift, ...]
    clipped: tuple[ClippedOutput, ...]

    def __bool__(self) -> bool:
        return bool(self.orders or self.flows or self.shifts or self.clipped)


def order_warnings(found: SystematicDifferences | None) -> list[str]:
    """Return a line for each other order."""
    return [] if found is None else [str(order) for order in found.orders]
