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
    standard deviation of 0.25 over at least 8 seeds. The original's accuracy is near chance when it
    is not above chance by a tenth of the way to 1, or by what chance itself gives in one of a
    hundred sets.

    Args:
        original: the original's answers on the seeds, or None where there is none.
        compressed: the compressed model's answers on them.
        labels: (seeds,), or None; those outside 0 … classes - 1 mean unlabelled.

    """
    lines = []
    varies = original is not None and not _hardly_varies(original)
    if original is not None and not varies:
        lines.append(f"the original's outputs hardly vary over the seeds: {_CURE}")
    if _hardly_varies(compressed):
        cure = _CURE_OF_COMPRESSION if varies else _CURE
        lines.append(f"the compressed model's outputs hardly vary over the seeds: {cure}")
    if original and labels is not None:
        classes = len(original[0].scores)
        answered = np.array([answer.failure is None for answer in original], bool)
        labelled = answered & (labels >= 0) & (labels < classes)
        decided = np.array([answer.decision or 0 for answer in original], object)
        if chance := _near_chance(decided[labelled] == labels[labelled], classes):
            lines.append(chance)
    return lines


def _hardly_varies(answers: Sequence[Answer]) -> bool:
    scores = [answer.scores for answer in answers if answer.failure is None]
    if len(scores) < LEAST_SEEDS:
        return False
    if not scores[0].size:  # too many joint decisions to have a score each
        return len({answer.decision for answer in answers if answer.failure is None}) == 1
    return bool(np.std(scores, axis=0).max() < _LEAST_SPREAD)


def _near_chance(right: NDArray[np.bool_], classes: int) -> str | None:
    count = len(right)
    if count < LEAST_SEEDS:
        return None
    chance = 1.0 / classes
    luck = _SIGMAS * sqrt(chance * (1.0 - chance) / count)
    if right.mean() > chance + max(luck, _NEAR_CHANCE * (1.0 - chance)):
        return None
    return (
        f"the original is right on only {right.mean():.0%} of {count} labelled seeds, where "
        f"chance is {chance:.0%}: {_CURE}, and that labels are numbered as the classes are"
    )
