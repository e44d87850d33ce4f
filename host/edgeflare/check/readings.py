"""Other preprocessing of images, tried on a model that answers otherwise than it should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.check.answers import Answers
from edgeflare.check.figures import OtherReading
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.diagnose.seed_disagreement import MOST_SEEDS, readings
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.run.exact_statistics import holm, sign_test

_CHANCE: Final = 0.001
"""Greatest p of a sign test, corrected for all that is tried, by which another reading is better.
What is tried is many things on few inputs, and the best of them is named."""

_LEAST_GAIN: Final = 0.1
"""Share of the inputs by which it has to be better to be worth a word."""

_LEAST_WRONG: Final = 0.05
"""Share of the inputs that have to be wrong before another reading is tried."""


def reading_of_the_reference(answers: Answers) -> OtherReading | None:
    """Return a preprocessing with which the reference is right clearly more often, by the labels.

    None where there is none, or nothing is known to be right.
    """
    truths = answers.truths()
    known = [at for at, truth in enumerate(truths) if truth is not None][:MOST_SEEDS]
    wanted = [truth for at in known if (truth := truths[at]) is not None]
    return _better(answers, answers.reference, known, wanted, "labels")


def reading_of_the_file(answers: Answers) -> OtherReading | None:
    """Return a preprocessing with which the twin agrees with the original clearly more often.

    None where there is none, or no original.
    """
    if answers.reference is not Arm.ORIGINAL:
        return None
    known = list(range(min(MOST_SEEDS, len(answers.places))))
    wanted = answers.of(Arm.ORIGINAL)[: len(known)]
    return _better(answers, Arm.TWIN, known, wanted, "original")


def _better(
    answers: Answers, arm: Arm, known: Sequence[int], wanted: Sequence[Answer], against: str
) -> OtherReading | None:
    """Return the reading with which the most answers are as wanted, if it is clearly better."""
    opened = answers.opened
    domain, model = opened.pair.interface.domain, opened.panel.host(arm)
    if not isinstance(domain, ImageDomain) or len(model.evaluator.signature.inputs) > 1:
        return None
    before = _as_wanted([answers.of(arm)[at] for at in known], wanted)
    if (~before).sum() < max(1.0, _LEAST_WRONG * len(known)):
        return None

    def answer(encoded: NDArray[np.generic]) -> list[Answer]:
        return list(model.decoder.read(model.evaluator.submit(encoded).result()))

    tried = readings(model.evaluator, domain.preprocess, answer)
    images = opened.seeds.inputs[[answers.places[at] for at in known]]
    after = {words: _as_wanted(read(images), wanted) for words, read in tried.items()}
    tests = [
        sign_test(int((its & ~before).sum()), int((before & ~its).sum())) for its in after.values()
    ]
    clearly = [
        words
        for (words, its), p in zip(after.items(), holm(tests), strict=True)
        if p < _CHANCE and its.mean() - before.mean() >= _LEAST_GAIN
    ]
    best = max(clearly, key=lambda words: int(after[words].sum()), default=None)
    if best is None:
        return None
    return OtherReading(
        words=best,
        against="labels" if against == "labels" else "original",
        inputs=len(known),
        before=int(before.sum()),
        after=int(after[best].sum()),
    )


def _as_wanted(answers: Sequence[Answer], wanted: Sequence[Answer]) -> NDArray[np.bool_]:
    pairs = zip(answers, wanted, strict=True)
    return np.array([not one.differs(other) for one, other in pairs], bool)
