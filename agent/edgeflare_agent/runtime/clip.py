"""A clip: a model that is run frame by frame, its state carried from each frame to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_agent.runtime.answers import ModelRejected, TensorSpec
from edgeflare_agent.runtime.model_runtime import OpenedModel
from edgeflare_agent.runtime.session_options import Invocation


class Clip:
    """A model whose one input is a clip of frames.

    A state is zero before the first frame, and each next one is what an output of the frame before
    was: as real numbers, since an output may be quantized otherwise than the input that it feeds.

    Attributes:
        inputs: those that no state feeds, (frames, *shape) each.
        outputs: all outputs, (frames, *shape) each.

    """

    def __init__(self, model: OpenedModel, invocation: Invocation) -> None:
        self._model = model
        self._frames = invocation.frames
        self._links = _links(model.inputs, model.outputs, invocation.state)
        fed = {given for given, _ in self._links}
        self._free = [n for n in range(len(model.inputs)) if n not in fed]
        if not self._free:
            raise ModelRejected("each of its inputs is fed by a state: leave one for the frames")
        self.inputs = self._of_clip([model.inputs[n] for n in self._free])
        self.outputs = self._of_clip(model.outputs)

    def invoke(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        """Run the model on all frames of a clip.

        Args:
            inputs: one array for each of `inputs`, in its shape and dtype.
            outputs: one array for each of `outputs`, which is filled.

        Raises:
            RuntimeError, ValueError: see `OpenedModel.step`.

        """
        model = self._model
        model.reset()
        given: list[NDArray[Any]] = [_zeros(spec) for spec in model.inputs]
        for frame in range(self._frames):
            for n, rows in zip(self._free, inputs, strict=True):
                given[n] = rows[frame, ...]
            made = [rows[frame, ...] for rows in outputs]
            model.step(given, made)
            for fed, source in self._links:
                given[fed] = handed_over(made[source], model.outputs[source], model.inputs[fed])

    def _of_clip(self, specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        return tuple(replace(spec, shape=(self._frames, *spec.shape)) for spec in specs)


def handed_over(raw: NDArray[Any], made: TensorSpec, given: TensorSpec) -> NDArray[Any]:
    """Return an output's values as an input takes them: dequantized, and quantized anew.

    Args:
        raw: the output's values, in its shape and dtype.
        made: the output.
        given: the input, of the same shape but for dimensions of 1.

    Returns:
        The values in the input's shape and dtype, rounded to the nearest and clipped to its range.
        Where both have the same quantization, they are the same values.

    """
    layout = (made.dtype, made.scale, made.zero_point)
    if layout == (given.dtype, given.scale, given.zero_point):
        return raw.reshape(given.shape)
    real = raw.astype(np.float32)
    if _is_quantized(made):
        real = (real - np.float32(made.zero_point)) * np.float32(made.scale)
    if _is_quantized(given):
        info = np.iinfo(given.dtype)
        real = np.round(real / np.float32(given.scale) + np.float32(given.zero_point))
        real = np.clip(real, info.min, info.max)
    return real.reshape(given.shape).astype(given.dtype)


def _links(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], state: Mapping[str, str]
) -> list[tuple[int, int]]:
    """Return the positions of each input that a state feeds, and of the output that it is.

    Raises:
        ModelRejected: there is no such input or output, or the two do not fit.

    """
    return [
        _checked(_position("input", inputs, given), _position("output", outputs, made))
        for given, made in state.items()
    ]


def _checked(given: tuple[int, TensorSpec], made: tuple[int, TensorSpec]) -> tuple[int, int]:
    (fed, takes), (source, gives) = given, made
    if [n for n in takes.shape if n != 1] != [n for n in gives.shape if n != 1]:
        raise ModelRejected(
            f"the state {gives.name!r} has shape {gives.shape}, which does not fit the input "
            f"{takes.name!r} of shape {takes.shape}"
        )
    plain = not (_is_quantized(takes) or _is_quantized(gives))
    if plain and takes.dtype != gives.dtype:
        raise ModelRejected(
            f"the state {gives.name!r} is {gives.dtype}, which does not fit the input "
            f"{takes.name!r} of {takes.dtype}"
        )
    return fed, source


def _position(role: str, specs: Sequence[TensorSpec], name: str) -> tuple[int, TensorSpec]:
    for position, spec in enumerate(specs):
        if spec.name == name:
            return position, spec
    known = ", ".join(f"{spec.name} {spec.shape}" for spec in specs)
    raise ModelRejected(f"there is no {role} {name!r} for a state: its {role}s are {known}")


def _zeros(spec: TensorSpec) -> NDArray[Any]:
    return np.full(spec.shape, spec.zero_point if _is_quantized(spec) else 0, spec.dtype)


def _is_quantized(spec: TensorSpec) -> bool:
    return bool(spec.scale) and np.dtype(spec.dtype).kind in "iu"
