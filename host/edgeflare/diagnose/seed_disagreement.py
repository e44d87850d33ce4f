"""Whether arms disagree on the seeds too, and whether another reading of the image explains it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Image
from edgeflare.diagnose.evidence import Disagreement
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.preprocess import PRESETS, Encoder, Preprocess

MOST_SEEDS: Final = 64
"""Seeds that another reading is tried on."""

_WORTH_A_TRY = 0.02
"""Distance from which on other readings are tried: several times what 8 bits cost. It is asked of
probabilities, since pictures are often recognised in wrong colours too."""

_LEFT = 0.25
"""Share of the distance that a reading may leave and still explain it."""

_NEARLY_ALL = 0.9
"""Share of the seeds that get one label from a model which does not tell them apart."""

Labels = Sequence[int | None]
Probabilities = NDArray[np.float64]
"""Of each class, (seeds, classes)."""

Read = Callable[[NDArray[np.uint8]], Probabilities]
"""From images to the probabilities that a model gives them."""


def disagreement(
    first: Labels, second: Labels, probabilities: tuple[Probabilities, Probabilities]
) -> Disagreement:
    """Compare two arms' labels of the same seeds, at least one, and their probabilities."""
    pairs = list(zip(first, second, strict=True))
    differing = [a for a, b in pairs if a != b]
    commonest = max(list(second).count(label) for label in set(second))
    return Disagreement(
        rate=len(differing) / len(pairs),
        classes=len(set(differing)) / len(set(first)),
        varied=commonest < _NEARLY_ALL * len(pairs),
        distance=_distance(*probabilities),
    )


def explained(
    found: Disagreement,
    images: NDArray[np.uint8],
    wanted: Probabilities,
    readings: Mapping[str, Read],
) -> Disagreement:
    """Look for a reading of the images that makes a model answer as it should.

    Args:
        found: how the two arms disagree.
        images: seeds, (count, H, W, C).
        wanted: the probabilities that the other arm gave them.
        readings: ways in which the model could be shown the images, by what one would say of them.

    """
    if found.distance < _WORTH_A_TRY or not found.varied:
        return found
    left = {
        name: _distance(wanted, read(images)) / found.distance for name, read in readings.items()
    }
    best = min(left, key=lambda name: left[name], default=None)
    if best is None or left[best] > _LEFT:
        return found
    return replace(found, explained=f"{best} ({left[best]:.0%} of the difference is left)")


def _distance(first: Probabilities, second: Probabilities) -> float:
    return float(np.abs(first - second).sum(axis=1).mean() / 2)


def readings(
    evaluator: Evaluator, own: Preprocess, answer: Callable[[NDArray[np.generic]], Probabilities]
) -> dict[str, Read]:
    """Return the ways in which a model may be shown images other than its own.

    Args:
        evaluator: the model.
        own: its preprocessing.
        answer: from encoded inputs to probabilities.

    """
    tensor = evaluator.signature.input

    def through(preprocess: Preprocess, turn: Callable[[Image], Image]) -> Read:
        def read(images: NDArray[np.uint8]) -> Probabilities:
            turned = np.stack([turn(image) for image in images])
            return answer(Encoder(preprocess, tensor).encode(np.ascontiguousarray(turned)))

        return read

    def same(image: Image) -> Image:
        return image

    def reversed_behind(images: NDArray[np.uint8]) -> Probabilities:
        encoded = Encoder(own, tensor).encode(images)
        return answer(np.ascontiguousarray(encoded[..., ::-1]))

    channels, height, width = tensor.shape[-1], *tensor.shape[1:3]
    known: dict[str, Read] = {}
    if len(tensor.shape) == 4 and channels >= 3:
        known["read with its channels in reverse order"] = through(own, lambda one: one[..., ::-1])
        known["given its channels in reverse order, each preprocessed as its own"] = reversed_behind
    if height == width:
        known["read with rows and columns exchanged"] = through(
            own, lambda one: one.transpose(1, 0, 2)
        )
    known["read upside down"] = through(own, lambda one: one[::-1])
    known["read from right to left"] = through(own, lambda one: one[:, ::-1])
    known["read as its negative"] = through(own, lambda one: 255 - one)
    for name, preset in PRESETS.items():
        fits = all(len(values) in (1, channels) for values in (preset.mean, preset.std))
        if fits and preset != own:
            known[f'preprocessed as by "{name}"'] = through(preset, same)
    return known
