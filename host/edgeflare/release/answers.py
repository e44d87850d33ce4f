"""What the arms answer to inputs as they come, and what that comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from time import monotonic
from typing import Any, Final, overload

from numpy.typing import NDArray

from edgeflare.campaign.non_finite_outputs import NonFiniteRows, begins, non_finite_rows
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.core.seeds import SeedChoice
from edgeflare.core.truths import is_right, mean_distances
from edgeflare.pages.answers.answer_forms import RecordedAnswer, recorded_views
from edgeflare.release.class_losses import class_losses
from edgeflare.release.figures.data import DataFigures
from edgeflare.release.figures.decisions import (
    ChangedInput,
    ClassLoss,
    DecisionChanges,
    DecisionFigures,
)
from edgeflare.run.harm import right_by_arm
from edgeflare.run.systematic.differences import systematic_differences
from edgeflare.run.systematic.figures import SystematicDifferences

FIRST: Final = 64
"""Inputs that are asked first: enough to see most that is wrong by, in seconds."""

_TIMED: Final = 8
"""Inputs that tell how long one takes."""

_SLOW: Final = 0.25
"""Seconds of the first input from which on no further one is asked to tell how long one takes."""

_REPEATED: Final = 32
"""Inputs that the device is given once more."""

_LOOKED_INTO: Final = 12
"""Changed inputs that are kept."""


@dataclass(frozen=True)
class Answers:
    """What the arms answered.

    Attributes:
        opened: the pair, on one device.
        places: the positions of the inputs among the seeds, in the order in which they were asked.
        evaluated: the answers, in that order.
        repeated: what the device answered to some of the first, and what when these were given once
            more, backwards, of which the end may be missing.

    """

    opened: OpenedPair
    places: Sequence[int]
    evaluated: Sequence[EvaluatedQuery]
    repeated: Sequence[tuple[EvaluatedQuery, EvaluatedQuery]]

    @property
    def goal(self) -> Goal:
        """Which arms are compared: the device with the original, or the twin where there is none.

        Of inputs as they come every changed decision counts.
        """
        known = self.opened.panel.arms
        return Goal(Find.ANY if Arm.ORIGINAL in known else Find.KERNEL).unmutated

    @property
    def reference(self) -> Arm:
        """The arm that the device is held against."""
        return self.goal.compared[0]

    @property
    def seed_ids(self) -> list[int]:
        """The ids of the inputs."""
        ids = self.opened.seeds.seed_ids
        return [ids[at] for at in self.places]

    def of(self, arm: Arm) -> list[Answer]:
        """Return the answers of an arm."""
        return [query.outcome[arm] for query in self.evaluated]

    def truths(self) -> list[Answer | None]:
        """Return what is right for each input; None where it is not known."""
        known = self.opened.truths
        return [known[seed_id] for seed_id in self.seed_ids]

    def views_of(self, seed_id: int) -> tuple[RecordedAnswer, ...]:
        """Return how the answers to an input are shown, by its id."""
        outcome = self.evaluated[self.seed_ids.index(seed_id)].outcome
        decoder = self.opened.panel.reading.decoders[Arm.DEVICE]
        views = recorded_views(decoder, outcome.answers, self.goal.compared)
        return tuple(view.with_classes(self.opened.pair.classes) for view in views)

    @cached_property
    def systematic(self) -> SystematicDifferences | None:
        """What differs in the same way on many inputs; None where no such thing is looked for."""
        labels = self.opened.seeds.labels_of(self.seed_ids)
        return systematic_differences(
            self.opened.panel.reading,
            self.goal.compared,
            self.evaluated,
            self.opened.pair.classes,
            None if labels is None or labels.ndim > 1 else labels.tolist(),
        )


def ask_arms(
    opened: OpenedPair,
    stopped: Callable[[], bool],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Iterator[Answers]:
    """Ask all arms about the seeds of a pair, until all are answered or it is stopped.

    Args:
        opened: the pair, on one device.
        stopped: whether to come to an end.
        progress: is called with the number of inputs that are answered, and that of all.

    Yields:
        What was answered: after the first inputs, and once it has ended.

    """
    order = places(opened)
    inputs = _InOrder(opened.seeds.inputs, order)
    ids = [opened.seeds.seed_ids[at] for at in order]
    again = min(_REPEATED, len(order))
    evaluated: list[EvaluatedQuery] = []
    repeated: list[tuple[EvaluatedQuery, EvaluatedQuery]] = []
    for part in (slice(0, FIRST), slice(FIRST, None)):
        if not order[part] or (evaluated and stopped()):
            continue
        arms = opened.panel.arms
        for query in opened.evaluate(inputs[part], ids[part], arms, stopped):
            evaluated.append(query)
            progress(len(evaluated), len(order))
        if not repeated and len(evaluated) >= again:
            # Backwards, so that what hangs on the input before shows.
            given = list(inputs[:again])[::-1]
            asked = opened.evaluate(given, ids[:again][::-1], (Arm.DEVICE,), stopped)
            repeated = list(zip(evaluated[:again][::-1], asked, strict=False))
        yield Answers(opened, order[: len(evaluated)], tuple(evaluated), tuple(repeated))


@dataclass(frozen=True, slots=True)
class _InOrder(Sequence[Input]):
    """Inputs in an order, of which none is copied before it is asked about."""

    inputs: NDArray[Any]
    order: Sequence[int]

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, at: int) -> Input: ...
    @overload
    def __getitem__(self, at: slice) -> _InOrder: ...
    def __getitem__(self, at: int | slice) -> Input | _InOrder:
        if isinstance(at, slice):
            return _InOrder(self.inputs, self.order[at])
        found: Input = self.inputs[self.order[at]]
        return found


def places(opened: OpenedPair) -> list[int]:
    """Return the positions of the seeds in the order in which arms are asked about them.

    Those come first that are spread over all labels, so that a part of them says as much as it can.
    """
    seeds = opened.seeds
    first = SeedChoice(limit=FIRST).places(len(seeds), seeds.labels).tolist()
    known = set(first)
    return [*first, *(at for at in range(len(seeds)) if at not in known)]


def seconds_per_input(opened: OpenedPair) -> float:
    """Ask all arms about a few seeds, and return the seconds that each took.

    The first input does not count where others are quick: it warms the models up.
    """
    first, *others = places(opened)[:_TIMED]
    seconds = _seconds_of(opened, [first])
    return seconds if seconds > _SLOW or not others else _seconds_of(opened, others)


def _seconds_of(opened: OpenedPair, order: Sequence[int]) -> float:
    """Return the seconds that each of some seeds takes, by their positions."""
    ids = [opened.seeds.seed_ids[at] for at in order]
    begun = monotonic()
    tuple(opened.evaluate(list(opened.seeds.inputs[order]), ids, opened.panel.arms))
    return (monotonic() - begun) / len(order)


def data_figures(answers: Answers) -> DataFigures:
    """Return what the inputs allow to say."""
    opened = answers.opened
    truths, its = answers.truths(), answers.of(answers.reference)
    known = [
        (answer, truth) for answer, truth in zip(its, truths, strict=True) if truth is not None
    ]
    orders = () if answers.systematic is None else answers.systematic.orders
    classes, of_classes = _classes(known)
    return DataFigures(
        source=opened.pair.seeds.name,
        inputs=len(answers.evaluated),
        available=len(opened.seeds),
        labelled=len(known),
        reference=answers.reference,
        right=sum(is_right(*own) for own in known) if known else None,
        different=len({_content(answers, seed_id) for seed_id in answers.seed_ids}),
        classes=classes,
        task_classes=of_classes,
        guessing_accuracy=_by_guessing(known),
        commonest_share=_alike(its),
        label_order=next((order for order in orders if order.first == "labels"), None),
    )


def _content(answers: Answers, seed_id: int) -> bytes:
    """Return the digest of all that the models are given of a seed."""
    seeds = answers.opened.seeds
    place = seeds.place(seed_id)
    digest = sha256(seeds.inputs[place].tobytes())
    for values in seeds.fixed.values():
        digest.update(values[place].tobytes())
    return digest.digest()


def _classes(known: Sequence[tuple[Answer, Answer]]) -> tuple[int, int] | tuple[None, None]:
    """Return how many classes occur among the labels, and how many there are; None without any."""
    if not known or not all(len(answer.scores) > 1 and truth.counted for answer, truth in known):
        return None, None
    seen = {truth.decision for _, truth in known}
    return len(seen), max(len(answer.scores) for answer, _ in known)


def _by_guessing(known: Sequence[tuple[Answer, Answer]]) -> float | None:
    """Return the share that decisions would hit if they were independent of what is right.

    None where decisions are not counted, or only one is right: then guesses hit always.
    """
    if not known or not all(answer.counted and truth.counted for answer, truth in known):
        return None
    decided = Counter(answer.decision for answer, _ in known)
    right = Counter(truth.decision for _, truth in known)
    if len(right) == 1:
        return None
    return sum(decided[label] * right[label] for label in right) / len(known) ** 2


def _alike(answers: Sequence[Answer]) -> float | None:
    """Return the share of the commonest decision; None where decisions are not counted."""
    if not answers or not all(answer.counted and answer.chooses for answer in answers):
        return None
    ((_, most),) = Counter(answer.decision for answer in answers).most_common(1)
    return most / len(answers)


def decision_figures(answers: Answers) -> DecisionFigures:
    """Return how the device decides beside the other arms."""
    opened, goal = answers.opened, answers.goal
    outcomes, truths = [query.outcome for query in answers.evaluated], answers.truths()
    by_arm = {arm: answers.of(arm) for arm in opened.panel.arms}
    first, device = (by_arm[arm] for arm in goal.compared)
    labelled, right = right_by_arm(outcomes, truths)
    changed = [at for at in range(len(outcomes)) if first[at].differs(device[at])]
    harmed = harmed_inputs(first, device, truths)
    twin = by_arm[Arm.TWIN]
    by_kernels = [at for at in range(len(outcomes)) if twin[at].differs_strictly(device[at])]
    by_file = None
    if answers.reference is Arm.ORIGINAL:
        by_file = changes_between(first, twin, truths)
    measure = opened.truths.measure()
    pooled = _pooled(answers, truths)
    found = non_finite_rows(opened.panel.reading, answers.evaluated)
    return DecisionFigures(
        device=opened.devices[0].profile.name,
        inputs=len(outcomes),
        failed=_failed(answers, {arm: set(rows) for arm, rows in found.items()}),
        begins=begins(opened, _by_place(answers, found)) if found else "",
        labelled=labelled,
        right=right,
        changes=changes_between(first, device, truths),
        by_file=by_file,
        measure=measure,
        distance=mean_distances(by_arm, truths) if measure else {},
        pooled_measure=first[0].pooled_measure if pooled else "",
        pooled=pooled,
        losses=_losses(answers, harmed, truths),
        systematic=answers.systematic,
        changed_inputs=tuple(
            _changed_inputs(answers, dict.fromkeys((*changed, *by_kernels)), harmed)
        ),
    )


def changes_between(
    first: Sequence[Answer], second: Sequence[Answer], truths: Sequence[Answer | None]
) -> DecisionChanges:
    """Return how the second of two arms decides otherwise than the first.

    Args:
        first: the answers of one arm.
        second: those of the other one to the same inputs.
        truths: what is right for each; None where it is not known.

    """
    pairs = [
        (answer, other)
        for answer, other in zip(first, second, strict=True)
        if answer.differs(other)
    ]
    return DecisionChanges(
        inputs=len(first),
        changed=len(pairs),
        by_tie=sum(
            answer.failure is other.failure is None and answer.differs_by_tie(other)
            for answer, other in pairs
        ),
        harmed=len(harmed_inputs(first, second, truths)),
        helped=len(harmed_inputs(second, first, truths)),
    )


def harmed_inputs(
    first: Sequence[Answer], second: Sequence[Answer], truths: Sequence[Answer | None]
) -> set[int]:
    """Return the positions of inputs that the first arm alone gets right."""
    return {
        at
        for at, (answer, other, truth) in enumerate(zip(first, second, truths, strict=True))
        if is_right(answer, truth) and not is_right(other, truth)
    }


def _by_place(answers: Answers, found: NonFiniteRows) -> NonFiniteRows:
    """Return the same by position among the seeds, in place of the order of asking."""
    return {
        arm: {answers.places[at]: kind for at, kind in rows.items()} for arm, rows in found.items()
    }


def _failed(answers: Answers, non_finite: Mapping[Arm, set[int]]) -> dict[Arm, dict[str, int]]:
    counts = {
        arm: Counter(
            "nan" if at in non_finite.get(arm, ()) else answer.failure
            for at, answer in enumerate(answers.of(arm))
            if answer.failure is not None
        )
        for arm in answers.opened.panel.arms
    }
    return {arm: dict(kinds) for arm, kinds in counts.items() if kinds}


def _pooled(answers: Answers, truths: Sequence[Answer | None]) -> dict[Arm, float]:
    """Return by arm the measure of all its answers together; empty where the task has none."""
    known = [(at, truth) for at, truth in enumerate(truths) if truth is not None]
    right = [truth for _, truth in known]
    values = {}
    for arm in answers.opened.panel.arms if known else ():
        its = answers.of(arm)
        value = right[0].pooled([its[at] for at, _ in known], right)
        if value is not None:
            values[arm] = value
    return values


def _losses(
    answers: Answers, harmed: set[int], truths: Sequence[Answer | None]
) -> tuple[ClassLoss, ...]:
    """Return the classes that the device gives less often, the largest loss first."""
    if answers.systematic is None:
        return ()
    first, device = (answers.of(arm) for arm in answers.goal.compared)
    decoder = answers.opened.panel.reading.decoders[answers.reference]
    return tuple(
        class_losses(
            answers.systematic.flows,
            decoder,
            (first, device),
            (harmed, harmed_inputs(device, first, truths)),
            answers.opened.pair.classes,
        )
    )


def _changed_inputs(
    answers: Answers, changed: Collection[int], harmed: set[int]
) -> Iterator[ChangedInput]:
    """Yield changed inputs: the harmed first, of these the strongest; by kernels alone last."""
    opened, goal = answers.opened, answers.goal
    decoders, classes = opened.panel.reading.decoders, opened.pair.classes
    truths, outcomes = answers.truths(), [query.outcome for query in answers.evaluated]
    strength = {at: goal.strength(outcomes[at]) for at in changed}
    order = sorted(changed, key=lambda at: (at not in harmed, -(strength[at] or 0.0), at))
    for at in order[:_LOOKED_INTO]:
        truth = truths[at]
        yield ChangedInput(
            seed_id=answers.seed_ids[at],
            name=opened.seeds.names[answers.places[at]],
            said={
                arm: answer.failure or decoders[arm].describe_answer(answer, classes)
                for arm, answer in outcomes[at].answers.items()
            },
            right="" if truth is None else decoders[Arm.TWIN].describe_answer(truth, classes),
            strength=strength[at],
        )
