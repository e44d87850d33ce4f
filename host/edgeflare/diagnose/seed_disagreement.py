"""Whether two arms disagree on the seeds, and whether another preprocessing explains it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.domains.image.preprocess import PRESETS, ImageEncoder, Preprocess, image_tensor
from edgeflare.models.evaluator import Evaluator
from edgeflare.record.json_types import Share
from edgeflare.tasks.value_decoder import ValueAnswer
from edgeflare_operators.operator_registry import Image

MOST_SEEDS: Final = 64
"""Seeds on which another preprocessing is tried."""

_WORTH_A_TRY = 0.02
"""Distance from which on other preprocessing is tried: several times that of 8-bit quantization. It
is one of probabilities, since images are often classified alike in wrong colours."""

_LEFT = 0.25
"""Share of the distance that may be left where another preprocessing explains it."""

_NEARLY_ALL = 0.9
"""Share of the seeds with one label, from which on a model's labels do not vary."""

LARGE = 0.3
"""Rate from which on a disagreement is large. Compression changes the labels of a few seeds in a
hundred; wrong input changes most of them."""

UNIFORM = 0.75
"""Share of the classes from which on all count as affected. Wrong input affects every class; a
fault in a layer often does not."""

Labels = Sequence[int | None]
Probabilities = NDArray[np.float64]
"""Probability of each class, (seeds, classes)."""

Read = Callable[[NDArray[np.uint8]], Probabilities]
"""Function of images to the probabilities that a model gives them."""

Answered = TypeVar("Answered")
"""What is made of the outputs of a model."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """How two arms disagree on the seeds.

    Attributes:
        rate: share of the seeds on which their labels differ.
        class_share: share of the classes, by the first arm's labels, with at least one such seed; 0
            of values, which have no classes.
        varied: whether the second arm tells the seeds apart: no label is given to nearly all.
        distance: mean over the seeds of the total variation between their probabilities, 0 to 1; of
            values, of their distance over the tolerance, at most 1 of each seed; of texts, objects
            and masks, of their distance, from 0 to 1.
        explained: how the second arm's input would have to be read for the two to agree; null where
            no such preprocessing was found, or none was tried.
        order: the other order of the second arm's outputs, classes or values in which the two
            agree, in a sentence; null where there is none.

    """

    rate: Share
    class_share: Share
    varied: bool
    distance: Annotated[float, msgspec.Meta(ge=0, le=1.000001)] = 0.0
    explained: str | None = None
    order: str | None = None

    @property
    def large(self) -> bool:
        """Whether the labels differ on many seeds of nearly all classes."""
        return self.rate >= LARGE and self.class_share >= UNIFORM and self.varied


def disagreement(
    first: Labels, second: Labels, probabilities: tuple[Probabilities, Probabilities]
) -> Disagreement:
    """Compare two arms' labels of the same seeds, at least one, and their probabilities."""
    pairs = list(zip(first, second, strict=True))
    differing = [a for a, b in pairs if a != b]
    commonest = max(list(second).count(label) for label in set(second))
    return Disagreement(
        rate=len(differing) / len(pairs),
        class_share=len(set(differing)) / len(set(first)),
        varied=commonest < _NEARLY_ALL * len(pairs),
        distance=round(_distance(*probabilities), 9),
    )


def disagreement_of_values(first: Sequence[Answer], second: Sequence[Answer]) -> Disagreement:
    """Compare two arms' values, texts or the like of the same seeds, at least one."""
    pairs = list(zip(first, second, strict=True))
    return Disagreement(
        rate=sum(answer.differs(other) for answer, other in pairs) / len(pairs),
        class_share=0.0,
        varied=any(answer.differs(second[0]) for answer in second[1:]),
        distance=round(float(np.mean([_distance_of_values(*pair) for pair in pairs])), 9),
    )


def _distance_of_values(one: Answer, other: Answer) -> float:
    strength = one.strength_against(other)
    if strength is None:
        return 1.0
    return min(1.0, strength + 1.0 if isinstance(one, ValueAnswer) else one.distance(other))


def explained(
    found: Disagreement,
    images: NDArray[np.uint8],
    wanted: Probabilities,
    readings: Mapping[str, Read],
) -> Disagreement:
    """Search for a preprocessing of the images with which a model answers as the other arm does.

    Args:
        found: how the two arms disagree.
        images: seeds, (count, H, W, C).
        wanted: the probabilities that the other arm gave them.
        readings: functions of images to the model's probabilities with another preprocessing, by a
            description of it.

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
    evaluator: Evaluator, own: Preprocess, answer: Callable[[NDArray[np.generic]], Answered]
) -> dict[str, Callable[[NDArray[np.uint8]], Answered]]:
    """Return other preprocessing that a model may have been given by mistake.

    Args:
        evaluator: the model.
        own: preprocessing of the model.
        answer: function of encoded inputs to what the model answers.

    Returns:
        From images to that, by a description of the preprocessing.

    """
    tensor = evaluator.signature.input
    held = image_tensor(tensor, own.layout)
    height, width, channels = held.shape

    def through(
        preprocess: Preprocess, turn: Callable[[Image], Image]
    ) -> Callable[[NDArray[np.uint8]], Answered]:
        def read(images: NDArray[np.uint8]) -> Answered:
            turned = np.stack([turn(image) for image in images])
            return answer(ImageEncoder(preprocess, tensor).encode(np.ascontiguousarray(turned)))

        return read

    def same(image: Image) -> Image:
        return image

    def reversed_behind(images: NDArray[np.uint8]) -> Answered:
        encoded = ImageEncoder(own, tensor).encode(images)
        return answer(np.ascontiguousarray(np.flip(encoded, held.channel_axis)))

    known: dict[str, Callable[[NDArray[np.uint8]], Answered]] = {}
    if channels >= 3:
        known["read with its channels in reverse order"] = through(
            own, lambda pixels: pixels[..., ::-1]
        )
        known["given its channels in reverse order, each preprocessed as its own"] = reversed_behind
    if height == width:
        known["read with rows and columns exchanged"] = through(
            own, lambda pixels: pixels.transpose(1, 0, 2)
        )
    known["read upside down"] = through(own, lambda pixels: pixels[::-1])
    known["read from right to left"] = through(own, lambda pixels: pixels[:, ::-1])
    known["read as its negative"] = through(own, lambda pixels: 255 - pixels)
    for name, preset in PRESETS.items():
        fits = all(len(values) in (1, channels) for values in (preset.mean, preset.std))
        other = replace(
            own,
            scale=preset.scale,
            mean=preset.mean,
            std=preset.std,
            channels=preset.channels,
        )
        if fits and other != own:
            known[f'preprocessed as by "{name}"'] = through(other, same)
    return known
