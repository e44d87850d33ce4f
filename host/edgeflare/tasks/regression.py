"""Values instead of decisions: keypoints, embeddings, angles, masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, prod
from typing import Literal

from edgeflare.core.answer import Answer
from edgeflare.core.task import LEAST_SEEDS, Decoder, ModelOutputs, Task
from edgeflare.core.tensor import Tensor, in_one_order
from edgeflare.errors import UserError
from edgeflare.tasks.frame_pooling import ClipFrames, FrameRule, require_frame_keys
from edgeflare.tasks.output_choice import chosen_output, is_numeric, one_frame
from edgeflare.tasks.value_decoder import (
    DISTANCES,
    POINT_DISTANCES,
    DistanceName,
    Measure,
    ValueDecoder,
)
from edgeflare.tasks.value_points import Axes, PointLayout

_GREATEST = {"relative": 2.0, "cosine": 2.0}
"""The greatest that a distance can be, where there is one."""


class Regression(Task):
    """Values; two models deviate where their distance is greater than the tolerance."""

    name = "regression"
    strategy = "climb"
    expects = "real numbers of any shape"
    decoders = (ValueDecoder,)

    def __init__(
        self,
        *,
        tolerance: float,
        distance: DistanceName = "absolute",
        output: str = "",
        normalize: tuple[int, ...] = (),
        point_size: int = 2,
        dimensions: int = 0,
        picture: tuple[float, ...] = (),
        axes: Axes = "xy",
        frames: Literal["last", "any", "mean", "worst"] = "last",
        first_frame: int = 0,
    ) -> None:
        """Make the task.

        Args:
            tolerance: the greatest distance that is no deviation, in units of the distance.
            distance: how far two models' values are apart; see `DistanceName`.
            output: the output that holds the values; see `chosen_output`.
            normalize: positions of two points, from 0, for the distance "normalized".
            point_size: number of values of a point in the output, such as 2 for x and y.
            dimensions: number of them that count for the distance, from the first; 0 for all.
            picture: values at the left, top, right and bottom edge of the input, which is a
                picture upon which reports draw the points; none where it is no such picture.
            axes: which coordinate of a point comes first.
            frames: how the distances of the frames of a clip are summed up: the last one, their
                mean, or the greatest ("worst"; "any" is the same, since one frame is enough).
            first_frame: the first frame of a clip that counts, from 0.

        """
        require_frame_keys(self.name, frames, first_frame, ("last", "any", "mean", "worst"))
        _require_tolerance(tolerance, distance)
        _require_points(distance, normalize, point_size)
        _require_coordinates(distance, point_size, dimensions, picture)
        points = None
        if distance in POINT_DISTANCES or dimensions or picture:
            points = PointLayout(
                point_size, dimensions or point_size, tuple(normalize), tuple(picture), axes
            )
        self._measure = Measure(float(tolerance), distance, points)
        self._output = output
        self._rule: FrameRule = frames
        self._first = first_frame

    @classmethod
    def fits(cls, tensor: Tensor) -> bool:
        """Whether an output holds real numbers."""
        return is_numeric(tensor)

    def decoder(self, model: ModelOutputs) -> ValueDecoder:
        """Return the decoder of the only output, or the one that is named."""
        at = chosen_output(type(self), model, self._output)
        tensor = one_frame(model.outputs[at], model.frames)
        if self._measure.points is not None:
            _require_points_of(tensor, self._measure.points, model.name)
        frames = ClipFrames.of_model(model.frames, self._rule, self._first, model.name)
        measure = replace(self._measure, mean=frames.rule == "mean")
        return ValueDecoder(model.outputs, at, measure, frames)

    def require_pair(
        self, original: Decoder | None, compressed: Decoder, classes: Sequence[str]
    ) -> None:
        """Refuse models whose values are not as many or in another order, and names of classes."""
        super().require_pair(None, compressed, classes)
        if original is None:
            return
        shapes = original.tensor.shape, compressed.tensor.shape
        given = f"the original gives {shapes[0]} and the compressed model {shapes[1]}"
        if prod(shapes[0]) != prod(shapes[1]):
            raise UserError(
                f"{given}: they are no pair, or output names another output of each; write its"
                " shape"
            )
        if not in_one_order(*shapes):
            raise UserError(
                f"{given}, as many values in another order, such as channels first and last:"
                " convert the original so that it gives the compressed model's shape, or name a"
                ' function that does, original = "FILE.py:FUNCTION"'
            )

    def model_warnings(self, name: str, answers: Sequence[Answer]) -> list[str]:
        """Return a line where a model's values hardly differ on at least 8 seeds."""
        if len(answers) < LEAST_SEEDS or any(answer.differs(answers[0]) for answer in answers[1:]):
            return []
        return [
            f"{name}'s values are within the tolerance {self._measure.tolerance:g} of each other on"
            f" all {len(answers)} seeds: check the tolerance, and the preprocessing"
        ]


def _require_tolerance(tolerance: float, distance: str) -> None:
    known = (*DISTANCES, *POINT_DISTANCES)
    if distance not in known:
        raise UserError(f"distance is {distance!r}; expected one of {', '.join(known)}")
    most = _GREATEST.get(distance, inf)
    if not 0.0 < tolerance < most:
        below = "" if most == inf else f" and below {most:g}, the greatest that it can be"
        raise UserError(
            f"tolerance is {tolerance}; expected a distance {distance!r} above 0{below}"
        )


def _require_points(distance: str, normalize: tuple[int, ...], point_size: int) -> None:
    if (distance == "normalized") != bool(normalize):
        raise UserError(
            "the distance 'normalized' and the key normalize belong together: give the positions of"
            " two points, such as normalize = [0, 1]"
        )
    if normalize and (len(set(normalize)) != 2 or len(normalize) != 2 or min(normalize) < 0):
        raise UserError(
            f"normalize is {list(normalize)}; expected the positions of two points, such as [0, 1]"
        )
    if point_size < 1:
        raise UserError(f"point_size is {point_size}; expected 1 or more")


def _require_coordinates(
    distance: str, point_size: int, dimensions: int, picture: tuple[float, ...]
) -> None:
    """Refuse coordinates that points cannot have, and a picture that shows no distance."""
    if not 0 <= dimensions <= point_size:
        raise UserError(
            f"dimensions is {dimensions}, of points of {point_size} values: give 1 to {point_size},"
            " or say point_size = as many values as the output has for a point"
        )
    if not picture:
        return
    left, top, right, bottom = picture if len(picture) == 4 else (0.0,) * 4
    if not all(map(isfinite, picture)) or left == right or top == bottom:
        raise UserError(
            f"picture is {list(picture)}; expected the values at its left, top, right and bottom"
            " edge, such as [0, 0, 1, 1] of shares, or [0, 0, 192, 192] of pixels"
        )
    if (dimensions or point_size) < 2:
        raise UserError("picture needs points of 2 dimensions or more: say point_size = 2")
    if distance in _GREATEST:
        raise UserError(
            f"picture shows how far points are apart, and {distance!r} is no distance of points:"
            ' say distance = "mean-point" or "farthest-point", or remove picture'
        )


def _require_points_of(tensor: Tensor, points: PointLayout, model: str) -> None:
    """Refuse an output that is not points of so many values, or has too few of them."""
    size, each = prod(tensor.shape), points.size
    if points.unit and (size % each or max(points.unit) >= size // each):
        raise UserError(
            f"{model}: output {tensor.name!r} {tensor.shape} has no points {points.unit[0]} and"
            f" {points.unit[1]} of {each} values: correct normalize and point_size"
        )
    if size % each:
        raise UserError(
            f"{model}: output {tensor.name!r} {tensor.shape} has {size} values, which are no points"
            f" of {each}: correct point_size"
        )
