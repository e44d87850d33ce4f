"""The judgement of a repaired model: what is counted on each set of inputs, before and after.

An input *deviates* where original and compressed model decide differently by the measure of the
task, such as other labels, ties included. *Big* deviations are those of inputs on which the
original's two best probabilities are more than 1/128 apart, so that they are more than a matter of
rounding, or what takes their place with other tasks (`Answer.lead`); *strict* ones are those with
no tie on either side. A repair that removes ties turns many of them into strict deviations, so that
models are compared by the first two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer
from edgeflare.core.seeds import is_labelled
from edgeflare.errors import EdgeFlareError, InfrastructureError
from edgeflare.record.json_types import Count, Number, Share
from edgeflare.repair.judging.candidate_model import open_candidate
from edgeflare.repair.judging.judgement_inputs import (
    MIXED,
    SAMPLED,
    TIGHT,
    WIDE,
    JudgedSet,
    SetName,
)
from edgeflare.statistics.binomial import sign_test

BIG_MARGIN = 1 / 128
"""The margin of the original's probabilities above which a deviation is a big one: two steps of an
output of 8 bits."""

SCORED = (TIGHT, WIDE, MIXED, SAMPLED)
"""The sets by which candidates are compared; deviating seeds are too few."""

LEAST_DEVIATING = 20
"""Deviations before, below which a set is pooled with others for the score."""

Labels = NDArray[np.int64]


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is counted of one model on one set.

    Attributes:
        inputs: inputs of the set.
        deviating: those on which the model decides otherwise than the original, ties included.
        wide_margin: those of them on which the original's margin of probability is above 1/128.
        strict: those of `deviating` without a tie on either side.
        failed: inputs on which one of the two models gave no answer; they count nowhere else.
        right: labelled inputs to which the model gives the true label; null where none is labelled.
        labelled: labelled inputs that both models answered.
        measured: mean of the task's own measure of how far apart or how near the two models'
            answers are; absent where decisions are labels.

    """

    inputs: Count
    deviating: Count
    wide_margin: Count
    strict: Count
    failed: Count
    right: Count | None
    labelled: Count
    measured: Number | None = None


class Change(msgspec.Struct, frozen=True):
    """On how many inputs two models differ in being right.

    Attributes:
        mended: inputs that the model before gets wrong, and the one after does not.
        broken: inputs that the model after gets wrong, and the one before does not.
        p: the probability that chance makes the two so uneven: two-sided exact sign test.

    """

    mended: Count
    broken: Count
    p: Share


class SetJudgement(Change, frozen=True, kw_only=True):
    """A candidate beside the compressed model before, on one set, by the original's labels.

    Attributes:
        before: figures of the compressed model before.
        after: figures of the candidate.
        accuracy: the same judged by true labels (McNemar's test); null where there are none.

    """

    before: Figures
    after: Figures
    accuracy: Change | None


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A candidate beside the compressed model before, on each of the sets.

    Attributes:
        seeds: the seeds themselves.
        tight: inputs next to each other on both sides of the original's boundary; absent where
            answers have no borders, as of values and masks.
        wide: inputs of the same lines a little away from it; likewise.
        mixed: inputs drawn from lines between two seeds; absent where decisions have borders.
        sampled: inputs as they come near the compressed model's boundary.
        fresh: the inputs of `--test`; absent without.

    """

    seeds: SetJudgement
    tight: SetJudgement | None = None
    wide: SetJudgement | None = None
    mixed: SetJudgement | None = None
    sampled: SetJudgement
    fresh: SetJudgement | None = None

    @property
    def by_set(self) -> Mapping[SetName, SetJudgement]:
        """All that there are, by the name of the set, in the order in which they are shown."""
        sets: Mapping[SetName, SetJudgement | None] = {
            "seeds": self.seeds,
            "tight": self.tight,
            "wide": self.wide,
            "mixed": self.mixed,
            "sampled": self.sampled,
            "fresh": self.fresh,
        }
        return {name: input_set for name, input_set in sets.items() if input_set is not None}

    @property
    def scored(self) -> tuple[SetJudgement, ...]:
        """Those by which candidates are compared, in the order of `SCORED`."""
        return tuple(judged for name, judged in self.by_set.items() if name in SCORED)

    @property
    def score(self) -> float:
        """One number to choose by, smaller is better; see `score`."""
        sets = self.by_set
        return score(
            {name: input_set.before for name, input_set in sets.items()},
            {name: input_set.after for name, input_set in sets.items()},
        )


@dataclass(frozen=True, slots=True)
class SetAside:
    """A candidate that is not judged, and why: one line."""

    reason: str


def judged(
    content: bytes, opened: OpenedPair, sets: Mapping[SetName, JudgedSet]
) -> Judgement | SetAside:
    """Judge a candidate on the kernels of the twin.

    Args:
        content: the candidate's `.tflite` file.
        opened: the pair that it is a candidate of.
        sets: the inputs, by name; those of `Judgement`.

    Returns:
        The figures; or why there are none: the candidate does not load, has other outputs than the
        pair, or crashes, hangs or gives NaN on an input that the compressed model answers.

    """
    after = candidate_answers(content, opened, sets)
    return after if isinstance(after, SetAside) else compared(sets, after)


def candidate_answers(
    content: bytes, opened: OpenedPair, sets: Mapping[SetName, JudgedSet]
) -> dict[SetName, list[Answer]] | SetAside:
    """Return a candidate's answers by the name of the set, or why there are none; see `judged`."""
    after: dict[SetName, list[Answer]] = {}
    try:
        with open_candidate(content, opened) as candidate:
            for name, inputs in sets.items():
                after[name] = candidate.answers(inputs.inputs, inputs.seed_ids.tolist())
                failures = [  # of inputs that had an answer before
                    repaired.failure
                    for answer, repaired in zip(inputs.before, after[name], strict=True)
                    if repaired.failure is not None and answer.failure is None
                ]
                if failures:
                    number = f"{len(failures)} of {len(inputs.inputs)} inputs"
                    return SetAside(f"{failures[0]} on {number} of the set {name!r}")
    except InfrastructureError:
        raise
    except EdgeFlareError as error:  # whatever is wrong with it, other candidates are judged
        return SetAside(str(error))
    return after


def compared(
    sets: Mapping[SetName, JudgedSet], after: Mapping[SetName, Sequence[Answer]]
) -> Judgement:
    """Judge a candidate by its answers.

    Args:
        sets: the inputs, by name; those of `Judgement`.
        after: the candidate's answers to them.

    """
    return Judgement(
        **{name: compared_set(input_set, after[name]) for name, input_set in sets.items()}
    )


def compared_set(inputs: JudgedSet, after: Sequence[Answer]) -> SetJudgement:
    """Judge a candidate by its answers to one set."""
    changed = change(inputs.original, inputs.before, after)
    labels = inputs.labels
    return SetJudgement(
        changed.mended,
        changed.broken,
        changed.p,
        before=figures(inputs.original, inputs.before, labels),
        after=figures(inputs.original, after, labels),
        accuracy=None if labels is None else accuracy_change(labels, inputs.before, after),
    )


def figures(original: Sequence[Answer], arm: Sequence[Answer], labels: Labels | None) -> Figures:
    """Count one model's answers beside the original's.

    Args:
        original: the original's answers.
        arm: the model's answers to the same inputs.
        labels: the true labels, (inputs,); None where there are none, and one that is no class
            means unknown.

    """
    both = [_answered(*pair) for pair in zip(original, arm, strict=True)]
    pairs = [(f, g) for f, g, good in zip(original, arm, both, strict=True) if good]
    deviating = [(f, g) for f, g in pairs if f.differs(g)]
    right = [] if labels is None else _right(labels[both], [g for _, g in pairs])
    known = [decided for decided in right if decided is not None]
    return Figures(
        inputs=len(arm),
        deviating=len(deviating),
        wide_margin=sum(f.lead() > BIG_MARGIN for f, _ in deviating),
        strict=sum(not f.differs_by_tie(g) for f, g in deviating),
        failed=len(arm) - len(pairs),
        right=sum(known) if known else None,
        labelled=len(known),
        measured=_mean_measured(pairs),
    )


def _mean_measured(pairs: Sequence[tuple[Answer, Answer]]) -> float | None:
    if not pairs or pairs[0][0].counted:
        return None
    return round(sum(f.measured(g) for f, g in pairs) / len(pairs), 6)


def change(original: Sequence[Answer], before: Sequence[Answer], after: Sequence[Answer]) -> Change:
    """Count the inputs that no longer deviate, and those that begin to; ties included.

    An input on which one of the three gave no answer is left out.
    """
    return _change(
        (f.differs(g), f.differs(repaired))
        for f, g, repaired in zip(original, before, after, strict=True)
        if _answered(f, g, repaired)
    )


def accuracy_change(labels: Labels, before: Sequence[Answer], after: Sequence[Answer]) -> Change:
    """Count the labelled inputs on which one of two models is right alone: McNemar's exact test.

    Args:
        labels: (inputs,); one that is no class means unknown.
        before: answers of the one.
        after: answers of the other.

    """
    both = [_answered(*pair) for pair in zip(before, after, strict=True)]
    pairs = [(g, h) for g, h, good in zip(before, after, both, strict=True) if good]
    right = [_right(labels[both], [pair[side] for pair in pairs]) for side in (0, 1)]
    return _change((not g, not h) for g, h in zip(*right, strict=True) if g is not None)


def score(before: Mapping[str, Figures], after: Mapping[str, Figures]) -> float:
    """Return one number to choose a candidate by; smaller is better, and 1 is no change.

    For each of the sets `tight`, `wide`, `mixed` and `sampled` that there are it is

        (deviating after + big after) / (deviating before + big before),

    and the score is their mean, so that a set counts no more for having more deviations. Sets of
    fewer than 20 deviations before would be ratios of chance: they are pooled, their counts added
    up, and with them the next larger set where there are still fewer than 20. Where nothing
    deviated before, each deviation after adds 1.

    Args:
        before: the figures of the compressed model, by the name of the set.
        after: those of the candidate on the same sets.

    """
    names = sorted(before.keys() & set(SCORED), key=lambda name: (before[name].deviating, name))
    few: list[str] = []
    pools = [few]
    for name in names:
        pooled = sum(before[set_name].deviating for set_name in few)
        if before[name].deviating < LEAST_DEVIATING or 0 < pooled < LEAST_DEVIATING:
            few.append(name)
        else:
            pools.append([name])
    ratios = [
        _ratio(
            *(
                sum(of[name].deviating + of[name].wide_margin for name in pool)
                for of in (before, after)
            )
        )
        for pool in pools
        if pool
    ]
    return sum(ratios) / len(ratios)


def _ratio(before: int, after: int) -> float:
    return after / before if before else 1.0 + after


def _change(wrong: Iterable[tuple[bool, bool]]) -> Change:
    """Count the inputs on which one of two models is wrong alone."""
    mended = broken = 0
    for before, after in wrong:
        mended += before and not after
        broken += after and not before
    return Change(mended, broken, sign_test(mended, broken))


def _answered(*answers: Answer) -> bool:
    return all(answer.failure is None for answer in answers)


def _right(labels: Labels, answers: Sequence[Answer]) -> list[bool | None]:
    """Return whether each answer is the true label; None where that is unknown."""
    if not answers:
        return []
    known = is_labelled(labels, len(answers[0].probabilities))
    return [
        answer.decision == label if there else None
        for answer, label, there in zip(answers, labels.tolist(), known.tolist(), strict=True)
    ]
