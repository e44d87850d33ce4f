"""The systematic differences of two arms over the seeds: what differs alike on many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.joint_answer import JointAnswer
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.core.raw_output_rows import OutputDecoders, batch_from_bytes
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import tensor_bytes
from edgeflare.run.systematic.figures import (
    ClassFlow,
    ClippedOutput,
    OtherOrder,
    ScoreShift,
    SystematicDifferences,
)
from edgeflare.run.systematic.one_sided import class_flows, saturations, score_shifts
from edgeflare.run.systematic.orders import ConfirmedOrder, class_order, output_order, value_order
from edgeflare.tasks.value_decoder import ValueAnswer

_OF_THE_FILE: Final = (Arm.ORIGINAL, Arm.TWIN)
"""Two arms that are in another order where the compressed file is, and not the device alone."""

MOST_BYTES: Final = 2**25
"""Raw outputs of an arm that are looked at, at most. Of larger ones seeds are taken evenly."""


def systematic_differences(
    reading: OutputDecoders,
    compared: tuple[Arm, Arm],
    evaluated: Sequence[EvaluatedQuery],
    classes: Sequence[str] = (),
    labels: Sequence[int] | None = None,
) -> SystematicDifferences | None:
    """Return how two arms differ systematically; None where nothing is significant.

    Args:
        reading: decoders of the arms.
        compared: the arms, the one that the other is held against first.
        evaluated: what was answered to each seed.
        classes: the user's names of the classes; empty where there are none.
        labels: labels of the seeds; None where there are none.

    """
    known = _usable(compared, evaluated)
    if not known:
        return None
    some = [evaluated[at] for at in known]
    first, second = (_Arm(reading, arm, some) for arm in compared)
    orders = _orders(first, second, classes)
    if (
        orders
        and compared[0] is Arm.ORIGINAL
        and all(_answered(query, _OF_THE_FILE) for query in some)
    ):
        orders = _orders(first, _Arm(reading, Arm.TWIN, some), classes) or orders
    # Where classes are elsewhere, the other figures would only say that again.
    flows, shifts, clipped = ((), (), ()) if orders else _one_sided(first, second, classes)
    if labels is not None and (order := _label_order(first, [labels[at] for at in known], classes)):
        orders = [order, *orders]
    found = SystematicDifferences(
        first=compared[0],
        second=compared[1],
        orders=tuple(orders),
        flows=flows,
        shifts=shifts,
        clipped=clipped,
    )
    return found if found else None


def _one_sided(
    first: _Arm, second: _Arm, classes: Sequence[str]
) -> tuple[tuple[ClassFlow, ...], tuple[ScoreShift, ...], tuple[ClippedOutput, ...]]:
    """Return the flows, shifts and clipped outputs of two arms with the same order of classes."""
    heads = _heads(first, second, classes)
    all_classes = sum(head.classes for head in heads)
    all_scores = sum(head.scores for head in heads)
    clipped = saturations(first.decoder, first.rows, second.decoder, second.rows)
    return (
        tuple(flow for head in heads for flow in head.flows(all_classes)),
        tuple(shift for head in heads for shift in head.shifts(all_scores)),
        tuple(ClippedOutput(**output._asdict()) for output in clipped),
    )


def orders_between(
    reading: OutputDecoders,
    arms: tuple[Arm, Arm],
    evaluated: Sequence[EvaluatedQuery],
    classes: Sequence[str] = (),
) -> list[OtherOrder]:
    """Return what the second of two arms has in another order; see `systematic_differences`."""
    some = [evaluated[at] for at in _usable(arms, evaluated)]
    first, second = (_Arm(reading, arm, some) for arm in arms) if some else (None, None)
    return [] if first is None or second is None else _orders(first, second, classes)


def _usable(arms: tuple[Arm, Arm], evaluated: Sequence[EvaluatedQuery]) -> list[int]:
    """Return the positions of seeds that both arms answered."""
    return [at for at, query in enumerate(evaluated) if _answered(query, arms)]


def _answered(query: EvaluatedQuery, arms: tuple[Arm, Arm]) -> bool:
    answers = query.outcome.answers
    return all(arm in answers and answers[arm].failure is None for arm in arms)


class _Arm:
    """What an arm answered to the seeds.

    Attributes:
        name: name of the arm.
        decoder: decoder of its rows.
        rows: (some seeds, *row), its raw outputs; of large ones not those of all seeds.
        answers: what they mean.

    """

    def __init__(
        self, reading: OutputDecoders, arm: Arm, evaluated: Sequence[EvaluatedQuery]
    ) -> None:
        self.name, self.decoder = arm.value, reading.decoders[arm]
        sizes = [sum(map(tensor_bytes, decoder.outputs)) for decoder in reading.decoders.values()]
        some = evaluated[:: -(-len(evaluated) * max(sizes) // MOST_BYTES)]
        batch = batch_from_bytes(self.decoder, [query.raw[arm] for query in some], {})
        self.rows: NDArray[np.generic] = batch.outputs
        self.answers = [query.outcome[arm] for query in evaluated]


class _Head:
    """A head of two arms, or all of their answers to the seeds."""

    def __init__(
        self,
        head: str,
        name: Callable[[int], str],
        arms: tuple[str, str],
        first: Sequence[Answer],
        second: Sequence[Answer],
    ) -> None:
        self._head, self._name, self._arms = head, name, arms
        self._first, self._second = first, second
        self._confusions = [
            answer.confusion(its) for answer, its in zip(first, second, strict=True)
        ]

    def order(self) -> OtherOrder | None:
        """Return the other order in which the second arm has classes or values."""
        values = [
            [answer for answer in arm if isinstance(answer, ValueAnswer)]
            for arm in (self._first, self._second)
        ]
        if values[0]:
            order = value_order(values[0], values[1])
            return None if order is None else _named(order, self._arms, "values", self._head, str)
        order = class_order(self._confusions, self._scores())
        if order is None:
            return None
        return _named(order, self._arms, "classes", self._head, self._name)

    @property
    def classes(self) -> int:
        """How many classes the arms tell apart; 0 where only those that are seen are known."""
        one = self._first[0]
        return len((one.parts[0] if isinstance(one, JointAnswer) else one).scores)

    @property
    def scores(self) -> int:
        """How many scores its decisions have."""
        return len(self._first[0].support(self._first[0]))

    def flows(self, classes: int) -> list[ClassFlow]:
        """Return the classes with a one-sided flow, of so many in all parts."""
        return [
            ClassFlow(
                head=self._head,
                name=self._name(flow.label),
                left=flow.left,
                came=flow.came,
                p_corrected=flow.p,
            )
            for flow in class_flows(self._confusions, classes)
        ]

    def shifts(self, scores: int) -> list[ScoreShift]:
        """Return the scores that moved one-sidedly, of so many in all parts."""
        words, _ = self._first[0].support_words()
        return [
            ScoreShift(
                head=self._head,
                score=f"{words}, of value {shift.place}" if self.scores > 1 else words,
                lower=shift.lower,
                higher=shift.higher,
                median=shift.median,
                low=shift.low,
                high=shift.high,
                p_corrected=shift.p,
            )
            for shift in score_shifts(self._first, self._second, scores)
        ]

    def _scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return both arms' scores of the classes; None where an answer has none, or several."""
        if isinstance(self._first[0], JointAnswer) or not len(self._first[0].scores):
            return None
        return (
            np.stack([answer.scores for answer in self._first]),
            np.stack([answer.scores for answer in self._second]),
        )


def _heads(first: _Arm, second: _Arm, classes: Sequence[str]) -> list[_Head]:
    """Return the heads of two arms, or all of their answers as one part."""
    arms = (first.name, second.name)
    if not first.decoder.heads:
        name = class_namer(first.decoder, first.answers[0], classes)
        return [_Head("", name, arms, first.answers, second.answers)]
    parts = [
        list(
            zip(
                *(answer.parts for answer in arm.answers if isinstance(answer, JointAnswer)),
                strict=True,
            )
        )
        for arm in (first, second)
    ]
    return [
        _Head(head.tensor.name, class_namer(head, mine[0], ()), arms, mine, its)
        for head, mine, its in zip(first.decoder.heads, *parts, strict=True)
    ]


def class_namer(decoder: Decoder, answer: Answer, classes: Sequence[str]) -> Callable[[int], str]:
    """Return what names a class of an answer, or of each part of a joint one."""

    def name(label: int) -> str:
        if isinstance(answer, JointAnswer):
            return str(label)
        return classes[label] if label < len(classes) else decoder.describe(label)

    return name


def _orders(first: _Arm, second: _Arm, classes: Sequence[str]) -> list[OtherOrder]:
    """Return the other order of outputs, or else of the classes or values of each part."""
    order = output_order(first.decoder, first.rows, second.decoder, second.rows)
    if order is None:
        heads = _heads(first, second, classes)
        return [one for head in heads if (one := head.order()) is not None]
    names = [tensor.name for tensor in first.decoder.outputs]
    return [_named(order, (first.name, second.name), "outputs", "", names.__getitem__)]


def _label_order(arm: _Arm, labels: Sequence[int], classes: Sequence[str]) -> OtherOrder | None:
    """Return the order in which a model has the classes of the seeds' labels; None if it is none.

    Labels that are none of its classes mean unlabelled.
    """
    known = [
        (label, answer)
        for label, answer in zip(labels, arm.answers, strict=True)
        if answer.counted and 0 <= label < len(answer.scores)
    ]
    if not known or isinstance(known[0][1], JointAnswer):
        return None
    scores = np.stack([answer.scores for _, answer in known])
    order = class_order(
        [np.array([[label, answer.decision, 1]], np.int64) for label, answer in known],
        (np.eye(scores.shape[1])[[label for label, _ in known]], scores),
    )
    if order is None:
        return None
    name = class_namer(arm.decoder, known[0][1], classes)
    return _named(order, ("labels", arm.name), "classes", "", name)


def _named(
    order: ConfirmedOrder,
    arms: tuple[str, str],
    what: Literal["outputs", "classes", "values"],
    head: str,
    name: Callable[[int], str],
) -> OtherOrder:
    return OtherOrder(
        first=arms[0],
        second=arms[1],
        what=what,
        head=head,
        moved=tuple((name(first), name(other)) for first, other in order.moved),
        before=order.before,
        after=order.after,
        seeds=order.seeds,
    )
