"""Checks that the models answer as trained ones do; where not, preprocessing is often wrong."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import LEAST_SEEDS

_LEAST_SPREAD = 0.25
_SIGMAS = 2.33
_NEAR_CHANCE = 0.1
_CURE = "check scale, mean, std and channels of the preprocessing"
_CURE_OF_COMPRESSION = "check how it was compressed, the data for calibration most of all"


def classification_warnings(
    original: Sequence[Answer] | None,
    compressed: Sequence[Answer],
    labels: NDArray[np.int64] | None,
) -> list[str]:
    """Return one line for each sign of wrong preprocessing in the models' answers on the seeds.

    Outputs hardly vary when no class's score (a logit or a logarithm of a probability) has a
    standard deviation of 0.25 over at least 8 seeds. Where at least 8 seeds are labelled and the
    model is right clearly more often than one class for all would be, that is no sign: its softmax
    is flat, and it works. Accuracy is near chance when it is not above chance by a tenth of the way
    to 1, or by what chance itself gives in one of a hundred sets.

    Args:
        original: the original's answers on the seeds, or None where there is none.
        compressed: the compressed model's answers on them.
        labels: (seeds,), or None; those outside 0 … classes - 1 mean unlabelled.

    """
    lines = []
    reacts = original is not None and not _does_not_react(original, labels)
    if original is not None and not reacts:
        lines.append(f"the original's outputs hardly vary over the seeds: {_CURE}")
    if _does_not_react(compressed, labels):
        cure = _CURE_OF_COMPRESSION if reacts else _CURE
        lines.append(f"the compressed model's outputs hardly vary over the seeds: {cure}")
    if original and labels is not None:
        right, labelled = _right(original, labels)
        if len(labelled) and _near_chance(right, chance := 1.0 / len(original[0].scores)):
            lines.append(
                f"the original is right on only {right.mean():.0%} of {len(right)} labelled seeds,"
                f" where chance is {chance:.0%}: {_CURE}, and that labels are numbered as the"
                " classes are"
            )
    return lines


def hardly_vary(answers: Sequence[Answer]) -> bool:
    """Whether no class's score varies over at least 8 seeds, or all their decisions are one."""
    scores = [answer.scores for answer in answers if answer.failure is None]
    if len(scores) < LEAST_SEEDS:
        return False
    if not scores[0].size:  # too many joint decisions to have a score each
        return len({answer.decision for answer in answers if answer.failure is None}) == 1
    return bool(np.std(scores, axis=0).max() < _LEAST_SPREAD)


def _does_not_react(answers: Sequence[Answer], labels: NDArray[np.int64] | None) -> bool:
    """Whether a model's outputs hardly vary, and no labels show that it works all the same."""
    if not hardly_vary(answers):
        return False
    if labels is None:
        return True
    right, labelled = _right(answers, labels)
    if len(labelled) < LEAST_SEEDS:
        return True
    return _near_chance(right, float(np.bincount(labelled).max() / len(labelled)))


def _right(
    answers: Sequence[Answer], labels: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return of the labelled seeds that a model answered whether it is right, and the labels."""
    answered = np.array([answer.failure is None for answer in answers], bool)
    labelled = answered & (labels >= 0) & (labels < len(answers[0].scores))
    decided = np.array([answer.decision or 0 for answer in answers], object)
    return np.asarray(decided[labelled] == labels[labelled], bool), labels[labelled]


def _near_chance(right: NDArray[np.bool_], chance: float) -> bool:
    if len(right) < LEAST_SEEDS:
        return False
    luck = _SIGMAS * sqrt(chance * (1.0 - chance) / len(right))
    return bool(right.mean() <= chance + max(luck, _NEAR_CHANCE * (1.0 - chance)))
