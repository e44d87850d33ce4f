"""The decoder of values that are compared by a distance, and the distances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, prod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import LEAST_SUPPORT, NO_VALUES, Answer
from edgeflare.core.task import Decoder, target_name
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.pages.answers.values import MOST_POINTS, RegressionView, ShownPoint
from edgeflare.tasks.frame_pooling import ClipFrames
from edgeflare.tasks.output_choice import output_values
from edgeflare.tasks.value_points import PointLayout

STATE_VALUES = 64
"""Values of a state at most: those of an answer, averaged in as many groups."""

MOST_SHOWN_VALUES = 16
"""Values of each arm that are kept to be shown: the reports of thousands of findings stay small."""

MOST_SHOWN = 4
"""Values of an answer that are shown."""

_IN_UNITS_OF_VALUES = (
    *("absolute", "mean-absolute", "l2", "linf"),
    *("mean-point", "farthest-point"),
)
"""Distances whose tolerance has the unit of the values."""


@dataclass(frozen=True)
class Measure:
    """When the values of two models deviate.

    Attributes:
        tolerance: the greatest distance that is no deviation.
        distance: see `DistanceName`.
        points: how the values are points; None where they are just values.
        mean: whether the mean of the frames' distances counts, and not the greatest.

    """

    tolerance: float
    distance: str
    points: PointLayout | None = None
    mean: bool = False

    @property
    def words(self) -> str:
        """What the distance is."""
        name = f"{self.distance} distance"
        return f"mean over the frames of the {name}" if self.mean else name

    @cached_property
    def between(self) -> Callable[[Values, Values], Values]:
        """The distance of the values of each frame."""
        points = self.points
        if points is None or self.distance not in POINT_DISTANCES:
            return DISTANCES[self.distance]
        if self.distance == "farthest-point":
            return lambda a, b: np.asarray(points.apart(a, b).max(axis=-1))
        return lambda a, b: np.asarray(points.apart(a, b).mean(axis=-1))

    def counted(self, values: Values) -> Values:
        """Return the values that count for the distance: all, or the coordinates of points."""
        return values if self.points is None else self.points.counted(values)

    def name(self, place: int) -> str:
        """Return the name of a value that counts."""
        return f"value {place}" if self.points is None else self.points.name(place)


@dataclass(frozen=True, slots=True)
class ValueAnswer(Answer):
    """Values, which deviate from others by more than a tolerance.

    The decision is 0 of all of them, since there is nothing to choose: whether two differ is what
    `differs` says. There are no probabilities and no scores.

    Attributes:
        values: (frames that count, values) float32, or float64 of an output whose numbers float32
            does not hold; without meaning where the arm failed.
        measure: how they are compared.

    """

    chooses: ClassVar[bool] = False
    counted: ClassVar[bool] = False
    bordered: ClassVar[bool] = False
    truth_measure: ClassVar[str] = "distance to the target"

    values: NDArray[np.float32 | np.float64] = field(kw_only=True)
    measure: Measure = field(kw_only=True)

    def differs(self, other: Answer) -> bool:
        """Whether the distance is greater than the tolerance, or one of the two failed."""
        strength = self.strength_against(other)
        return self.decision != other.decision if strength is None else strength > 0.0

    def strength_against(self, other: Answer) -> float | None:
        """Return distance / tolerance - 1, below 0 where the two do not differ.

        None where an arm failed.
        """
        if self.decision is None or other.decision is None:
            return None
        return self.distance(other) / self.measure.tolerance - 1.0

    def margin(self, home: Answer) -> float:  # noqa: ARG002 - there is but one decision
        """Return infinity: no boundary lies between values."""
        return inf

    def departure(self, home: Answer, other: Answer) -> float:  # noqa: ARG002 - nor another decision
        """Return the distance from home."""
        return self.distance(home)

    def lead(self) -> float:
        """Return infinity: no second decision is near."""
        return inf

    def distance(self, other: Answer) -> float:
        """Return the distance, in its own units; of a clip, over the frames."""
        assert isinstance(other, ValueAnswer)  # noqa: S101 - all answers are of one task
        each = self._each(other)
        return float(each.mean() if self.measure.mean else each.max())

    def worst_frame(self, other: ValueAnswer) -> int:
        """Return the position of the frame with the greatest distance, among those that count."""
        return int(self._each(other).argmax())

    def support(self, home: Answer) -> NDArray[np.float64]:
        """Return the values in tolerances; of more than `MOST_SHOWN_VALUES` the largest of home's.

        Where the tolerance is none of a value, such as that of an angle, they are shares of home's.
        Of a clip they are those of the last frame that counts.
        """
        assert isinstance(home, ValueAnswer)  # noqa: S101 - all answers are of one task
        mine, its = (answer.values[-1].astype(np.float64) for answer in (self, home))
        places = np.arange(mine.size)
        if mine.size > MOST_SHOWN_VALUES:
            places = np.abs(its).argmax(keepdims=True)
        if self.decision is None or home.decision is None:
            return np.full(len(places), np.nan)
        if self.measure.distance in _IN_UNITS_OF_VALUES:
            return np.asarray(mine[places] / self.measure.tolerance)
        return np.asarray(mine[places] / np.maximum(np.abs(its[places]), np.finfo(np.float32).tiny))

    def support_words(self) -> tuple[str, float]:
        """Return the unit of the values, and half a tolerance or a fiftieth of a value."""
        if self.measure.distance in _IN_UNITS_OF_VALUES:
            return "value, in tolerances", 0.5
        return "value, as a share of it", LEAST_SUPPORT

    def state(self) -> NDArray[np.float64]:
        """Return at most 64 values, each the mean of as many of the answer's."""
        groups = np.array_split(self.values.ravel(), min(self.values.size, STATE_VALUES))
        return np.array([group.mean() for group in groups], np.float64)

    def equals(self, other: Answer) -> bool:
        """Whether both arms gave the same values."""
        assert isinstance(other, ValueAnswer)  # noqa: S101 - all answers are of one task
        return np.array_equal(self.values, other.values) and self.failure == other.failure

    def _each(self, other: ValueAnswer) -> Values:
        a, b = self.values.astype(np.float64), other.values.astype(np.float64)
        return self.measure.between(a, b)


@dataclass(frozen=True)
class ValueDecoder(Decoder):
    """Reads values.

    Attributes:
        measure: how values are compared.
        frames: the frames of a clip that count.

    """

    choices = 0
    chooses = False
    meaning = "values"
    answer_noun = "values"

    outputs: tuple[Tensor, ...]
    at: int
    measure: Measure
    frames: ClipFrames

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the values of each row."""
        values = output_values(batch, self.outputs, self.at)
        frames = self.measure.counted(self.frames.values(values.real)).astype(self._held)
        for at, frame in enumerate(frames):
            failure = values.failures.get(at)
            yield ValueAnswer(
                None if failure else 0,
                False,
                NO_VALUES,
                NO_VALUES,
                failure,
                values=frame,
                measure=self.measure,
            )

    def target(self, target: NDArray[np.generic]) -> ValueAnswer | None:
        """Return the values of a target; None where one of them is NaN.

        Args:
            target: real numbers, as many as the output has, or of points the coordinates that
                count alone; of a clip those of all frames, or of one frame for all of them.

        """
        count = self.frames.count or 1
        each = prod(self.tensor.shape) // count
        coordinates = self.measure.counted(np.zeros(each)).size
        sizes = dict.fromkeys((each, count * each, coordinates, count * coordinates))
        if target.dtype.kind not in "fiu" or target.size not in sizes:
            whole = " or ".join(str(count * size) for size in dict.fromkeys((each, coordinates)))
            once = f", or {each} for all frames" if count > 1 else ""
            raise UserError(f"{target_name(target)}, expected {whole} real numbers{once}")
        has_all = target.size in (each, count * each)
        real = target.astype(np.float64).reshape(-1, each if has_all else coordinates)
        real = self.measure.counted(real) if has_all else real
        every = np.broadcast_to(real, (count, coordinates))
        with np.errstate(over="ignore"):
            values = self.frames.values(every[None])[0].astype(self._held)
        if np.isinf(values).any():
            raise UserError("a value is infinite, expected real numbers, and NaN for no target")
        if np.isnan(values).any():
            return None
        return ValueAnswer(0, False, NO_VALUES, NO_VALUES, values=values, measure=self.measure)

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[RegressionView, ...]:
        """Return the distance, and the values that differ most; of a clip, in its worst frame."""
        given = {arm: answer for arm, answer in answers.items() if isinstance(answer, ValueAnswer)}
        known = {arm: answer.values for arm, answer in given.items() if answer.failure is None}
        size = max((values.shape[1] for values in known.values()), default=0)
        distance, frame, change = None, 0, np.zeros(size)
        if all(arm in known for arm in compared):
            first, second = (given[arm] for arm in compared)
            distance = float(f"{first.distance(second):.9g}")
            frame = first.worst_frame(second)
            change = np.abs(first.values[frame].astype(np.float64) - second.values[frame])
        places = np.sort(np.argsort(-change, kind="stable")[:MOST_SHOWN_VALUES])
        view = RegressionView(
            head=self.frames.frame_name(frame),
            measure=self.measure.words,
            distance=distance,
            tolerance=self.measure.tolerance,
            compared=compared,
            size=size,
            names=tuple(map(self.measure.name, places.tolist())),
            values={
                arm: _rounded(known[arm][frame, places]) if arm in known else None for arm in given
            },
            points=self._shown_points(
                {arm: values[frame] for arm, values in known.items()}, compared
            ),
        )
        return (view,)

    @property
    def _held(self) -> np.dtype[np.float32 | np.float64]:
        """The type in which values are compared: it holds every number of the output's type."""
        return np.result_type(self.tensor.dtype, np.float32)

    def _shown_points(
        self, known: Mapping[str, NDArray[np.float32 | np.float64]], compared: tuple[str, str]
    ) -> tuple[ShownPoint, ...]:
        """Return points with their distances, and with places where they lie in the picture.

        There are none where values are no points, or the tolerance is no distance of points.

        Args:
            known: the values of one frame by arm, without those that failed.
            compared: the two arms.

        """
        layout = self.measure.points
        in_its_unit = self.measure.distance in (*_IN_UNITS_OF_VALUES, *POINT_DISTANCES)
        if layout is None or not in_its_unit or not known:
            return ()
        values = {arm: numbers.astype(np.float64) for arm, numbers in known.items()}
        apart = None
        if all(arm in values for arm in compared):
            apart = layout.apart(*(values[arm] for arm in compared))
        shares = {arm: layout.shares(value) for arm, value in values.items() if layout.picture}
        count = next(iter(values.values())).size // layout.dimensions
        farthest = range(count) if apart is None else np.argsort(-apart, kind="stable").tolist()
        return tuple(
            ShownPoint(
                number=at,
                distance=None if apart is None else float(f"{apart[at]:.6g}"),
                places={
                    arm: (float(f"{share[at, 0]:.5g}"), float(f"{share[at, 1]:.5g}"))
                    for arm, share in shares.items()
                },
            )
            for at in sorted(farthest[:MOST_POINTS])
        )

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return the first values of an answer, and of how many they are."""
        if not isinstance(answer, ValueAnswer) or answer.failure is not None:
            return super().describe_answer(answer, classes)
        values = answer.values.ravel()
        first = ", ".join(f"{value:.4g}" for value in values[:MOST_SHOWN])
        return first if values.size <= MOST_SHOWN else f"{first}, … ({values.size} values)"


def _rounded(values: NDArray[np.float32 | np.float64]) -> tuple[float, ...]:
    """Return values with the digits that their type has."""
    digits = 7 if values.dtype == np.float32 else 16
    return tuple(float(f"{value:.{digits}g}") for value in values.tolist())


Values = NDArray[np.float64]
"""(values,) or (frames, values)."""


DistanceName = Literal[
    "absolute",
    "mean-absolute",
    "relative",
    "cosine",
    "l2",
    "linf",
    "mean-point",
    "farthest-point",
    "normalized",
]
"""How far the values a and b of two models are apart.

absolute, linf: the largest |a - b| of a value. mean-absolute: the mean of |a - b| over the values.
l2: the Euclidean norm of a - b. relative: that norm over the larger one of a and b. cosine: 1 - the
cosine of the angle between a and b. mean-point, farthest-point: the mean, or the largest, Euclidean
distance between the same points of a and b. normalized: that mean over the distance between two
named points.
"""


def _largest(a: Values, b: Values) -> Values:
    """Return the largest difference of a value, for each frame."""
    return np.asarray(np.abs(a - b).max(axis=-1))


def _mean_absolute(a: Values, b: Values) -> Values:
    """Return the mean difference of the values, for each frame."""
    return np.asarray(np.abs(a - b).mean(axis=-1))


def _euclidean(a: Values, b: Values) -> Values:
    """Return the Euclidean norm of the difference, for each frame."""
    return np.asarray(np.linalg.norm(a - b, axis=-1))


def _relative(a: Values, b: Values) -> Values:
    """Return the norm of the difference over the larger norm; 0 where both are zero."""
    larger = np.maximum(np.linalg.norm(a, axis=-1), np.linalg.norm(b, axis=-1))
    return np.asarray(_euclidean(a, b) / np.where(larger > 0.0, larger, 1.0))


def _cosine(a: Values, b: Values) -> Values:
    """Return 1 - cos of the angle; 1 where one alone is zero, 0 where both are."""
    norms = np.linalg.norm(a, axis=-1), np.linalg.norm(b, axis=-1)
    product = norms[0] * norms[1]
    angle = np.clip((a * b).sum(axis=-1) / np.where(product > 0.0, product, 1.0), -1.0, 1.0)
    both_zero = (norms[0] == 0.0) & (norms[1] == 0.0)
    return np.where(both_zero | (a == b).all(axis=-1), 0.0, 1.0 - angle)


DISTANCES: dict[str, Callable[[Values, Values], Values]] = {
    "absolute": _largest,
    "mean-absolute": _mean_absolute,
    "relative": _relative,
    "cosine": _cosine,
    "l2": _euclidean,
    "linf": _largest,
}
"""Distances that need no points, by name."""

POINT_DISTANCES = ("mean-point", "farthest-point", "normalized")
"""Distances of points, by name."""
