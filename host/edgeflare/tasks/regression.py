"""Values instead of decisions: keypoints, embeddings, angles, masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod
from typing import Literal

from edgeflare.core.answer import Answer
from edgeflare.core.task import LEAST_SEEDS, Decoder, ModelOutputs, Task
from edgeflare.core.tensor import Tensor, in_one_order
from edgeflare.errors import UserError
from edgeflare.tasks.clip_frames import ClipFrames, FrameRule, require_frame_keys
from edgeflare.tasks.output_choice import chosen_output, is_numeric, one_frame
from edgeflare.tasks.value_decoder import DISTANCES, DistanceName, Measure, ValueDecoder

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
        frames: Literal["last", "any", "mean", "worst"] = "last",
        first_frame: int = 0,
    ) -> None:
        """Make the task.

        Args:
            tolerance: the greatest distance that is no deviation, in units of the distance.
            distance: how far two models' values are apart; see `DistanceName`.
            output: the output that holds the values; see `chosen_output`.
            normalize: positions of two points, from 0, for the distance "normalized".
            point_size: values of a point there, such as 2 for x and y.
            frames: how the distances of the frames of a clip are summed up: the last one, their
                mean, or the greatest ("worst"; "any" is the same, since one frame is enough).
            first_frame: the first frame of a clip that counts, from 0.

        Raises:
            UserError: a value is out of its range, or does not go with another.

        """
        require_frame_keys(self.name, frames, first_frame, ("last", "any", "mean", "worst"))
        _require_tolerance(tolerance, distance)
        _require_points(distance, normalize, point_size)
        self._measure = Measure(float(tolerance), distance, tuple(normalize), point_size)
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
        size, each = prod(tensor.shape), self._measure.point_size
        if self._measure.points and (size % each or max(self._measure.points) >= size // each):
            raise UserError(
                f"{model.name}: output {tensor.name!r} {tensor.shape} has no points "
                f"{self._measure.points[0]} and {self._measure.points[1]} of {each} values: "
                "correct normalize and point_size"
            )
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
        if len(answers) < LEAST_SEEDS or any(one.differs(answers[0]) for one in answers[1:]):
            return []
        return [
            f"{name}'s values are within the tolerance {self._measure.tolerance:g} of each other on"
            f" all {len(answers)} seeds: check the tolerance, and the preprocessing"
        ]


def _require_tolerance(tolerance: float, distance: str) -> None:
    known = (*DISTANCES, "normalized")
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
