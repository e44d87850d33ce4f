"""Other preprocessing of images, tried on a model that answers otherwise than it should."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.diagnose.seed_disagreement import readings
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.release.answers import Answers
from edgeflare.release.figures.data import OtherReading
from edgeflare.statistics.binomial import sign_test
from edgeflare.statistics.multiple_comparisons import holm

_CHANCE: Final = 0.001
"""Greatest p of a sign test, corrected for all that is tried, by which another reading is better.
What is tried is many things on few inputs, and the best of them is named."""

_LEAST_MENDED: Final = 0.5
"""Share of the wrong answers that it has to mend to be an explanation of them."""

_TRIED: Final = 64
"""Inputs on which each reading is tried first."""

_MOST: Final = 256
"""Inputs on which those are tried that are any better on the first."""

_LEAST_WRONG: Final = 0.05
"""Share of the inputs that have to be wrong before another reading is tried."""


def reading_of_the_reference(answers: Answers, stopped: Callable[[], bool]) -> OtherReading | None:
    """Return a preprocessing with which the reference is right clearly more often, by the labels.

    None where there is none, or nothing is known to be right.
    """
    truths = answers.truths()
    known = {at: truth for at, truth in enumerate(truths) if truth is not None}
    return _better(answers, answers.reference, known, "labels", stopped)


def reading_of_the_file(answers: Answers, stopped: Callable[[], bool]) -> OtherReading | None:
    """Return a preprocessing with which the twin agrees with the original clearly more often.

    None where there is none, or no original.
    """
    if answers.reference is not Arm.ORIGINAL:
        return None
    return _better(
        answers, Arm.TWIN, dict(enumerate(answers.of(Arm.ORIGINAL))), "original", stopped
    )


def reading_of_the_device(answers: Answers, stopped: Callable[[], bool]) -> OtherReading | None:
    """Return a preprocessing with which the twin decides as the device clearly more often.

    None where there is none, or the pair says itself what the device does otherwise.
    """
    if answers.opened.stages is not None:
        return None
    return _better(answers, Arm.TWIN, dict(enumerate(answers.of(Arm.DEVICE))), "device", stopped)


def _better(
    answers: Answers,
    arm: Arm,
    wanted: Mapping[int, Answer],
    against: Against,
    stopped: Callable[[], bool],
) -> OtherReading | None:
    """Return the reading with which the most answers are as wanted, if it is clearly better.

    Args:
        answers: answers of the arms.
        arm: the one that is given other inputs; it runs on the host.
        wanted: what it should answer, by the position of the input.
        against: where the wanted answers are from.
        stopped: whether to come to an end; no further reading is tried then.

    """
    opened = answers.opened
    domain, model = opened.pair.interface.domain, opened.panel.host(arm)
    if not isinstance(domain, ImageDomain) or len(model.evaluator.signature.inputs) > 1:
        return None
    places = list(wanted)[:_MOST]
    theirs = [wanted[at] for at in places]
    before = _as_wanted([answers.of(arm)[at] for at in places], theirs)
    if (~before).sum() < max(1.0, _LEAST_WRONG * len(places)):
        return None

    def answer(encoded: NDArray[np.generic]) -> list[Answer]:
        return list(model.decoder.read(model.evaluator.submit(encoded).result()))

    tried = readings(model.evaluator, domain.preprocess, answer)
    images = opened.seeds.inputs[[answers.places[at] for at in places]]
    few = slice(0, _TRIED)
    first = {
        words: _as_wanted(read(images[few]), theirs[few])
        for words, read in tried.items()
        if not stopped()
    }
    any_better = [words for words, its in first.items() if its.sum() > before[few].sum()]
    after = {
        words: _as_wanted(tried[words](images), theirs) for words in any_better if not stopped()
    }
    best = _clearly_best(before, after, len(tried))
    if best is None:
        return None
    return OtherReading(
        description=best,
        against=against,
        inputs=len(places),
        before=int(before.sum()),
        after=int(after[best].sum()),
    )


def _clearly_best(
    before: NDArray[np.bool_], after: Mapping[str, NDArray[np.bool_]], tried: int
) -> str | None:
    """Return the reading with the most answers as wanted; None where it is not clearly better.

    Args:
        before: (n,), which answers are as wanted with the pair's preprocessing.
        after: likewise with each of some readings.
        tried: how many were tried, for which the tests are corrected.

    """
    tests = [
        sign_test(int((its & ~before).sum()), int((before & ~its).sum())) for its in after.values()
    ]
    corrected = holm([*tests, *[1.0] * (tried - len(tests))])
    clearly = [
        words
        for (words, its), p in zip(after.items(), corrected, strict=False)
        if p < _CHANCE and (its.sum() - before.sum()) >= _LEAST_MENDED * (~before).sum()
    ]
    return max(clearly, key=lambda words: int(after[words].sum()), default=None)


Against = Literal["labels", "original", "device"]


def _as_wanted(answers: Sequence[Answer], wanted: Sequence[Answer]) -> NDArray[np.bool_]:
    pairs = zip(answers, wanted, strict=True)
    return np.array([not answer.differs(other) for answer, other in pairs], bool)
