"""A compressed model alone on a device: inputs that are drawn, and whether the host agrees.

Without an original nobody can say whether the model is good, and without data not what it decides
in the field. What a device does can still be told: whether its outputs are the host's, finite, not
all the same and not at the ends of their range, whether they are the same a second time, and which
operator by itself is computed otherwise.

Models of pictures and sounds are given some that the package brings along. The pictures are of
scikit-image, as `examples/face_detection` has them, at 64 × 64: `chelsea`, `coffee`, `rocket`,
`brick`, `coins`, `hubble_deep_field`, `gravel` and `astronaut`, which are in the public domain or
CC0. The sounds are four words that espeak-ng speaks, a second each at 8 kHz, of
`examples/spoken_words`.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.tensor import RawBatch, Tensor, dequantize, pack_rows, tensor_bytes, unpack_rows
from edgeflare.devices.device import Device
from edgeflare.diagnose.layer_graphs import LayeredModel, reason_not_seen
from edgeflare.diagnose.layers.layer_comparison import (
    ComparedInput,
    LayerComparison,
    OpenedLayers,
    compare_layers,
    device_side,
    probe_on_host,
)
from edgeflare.diagnose.layers.layer_figures import ErrorSums
from edgeflare.diagnose.layers.layers_page import wrong_in_words
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, Evaluator
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.quantized_range import range_of
from edgeflare.models.shape_folding import with_fixed_shapes
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.figures.check_figures import DrawnFigures, DrawnOutput
from edgeflare.release.figures.device_figures import InvocationVariant
from edgeflare.release.figures.file import SeenLayers
from edgeflare.release.invocation_variants import INPUTS as VARIED
from edgeflare.release.invocation_variants import ReadOutputs, device_variants
from edgeflare.release.layer_faults import together_on_device
from edgeflare.run.run_document import RunDevice
from edgeflare.run.run_warnings import undelegated

INPUTS: Final = 64
"""Inputs that are drawn."""

_LAYER_INPUTS: Final = 8
"""Drawn inputs that the layers are compared on."""

_REPEATED: Final = 16
"""Drawn inputs that the device is given once more."""

_MOST_BYTES: Final = 2**26
"""Bytes of all drawn inputs, at most; of large ones there are fewer, but eight at least."""

_TOKENS: Final = (100, 10, 2)
"""Whole numbers without a scale, such as words, are drawn below the first of these, and below the
next ones where the host refuses half of them: a vocabulary may be small."""

_COARSEST: Final = 4
"""Values along each side of the noise that a smooth picture is made of."""

_CHANNELS: Final = (1, 3, 4)
"""Channels of what may be a picture."""

_LEAST_SOUND: Final = 4000
"""Values in one row of what may be a sound: half a second at 8 kHz."""

_QUIETEST: Final = 0.1
"""The least peak of a sound, of the loudest value that there is."""


def drawn_inputs(
    graph: Graph | None, tensors: Sequence[Tensor], count: int, tokens: int = _TOKENS[0]
) -> list[NDArray[np.generic]]:
    """Return inputs that are drawn within the range of each input tensor.

    Whole numbers with a scale are drawn over all of their type; floats within the range that the
    graph quantizes them to, else from -1 to 1. Of what may be pictures or sounds every second one
    is a sample of the package, and a smooth picture once these are used up: sums of noise cancel
    each other.

    Args:
        graph: graph of the model; None where it cannot be read.
        tensors: input tensors of the model.
        count: how many inputs.
        tokens: whole numbers without a scale, such as words, are drawn below this.

    Returns:
        For each tensor (count, *shape), in its dtype.

    """
    return [np.stack(list(_drawn(graph, tensor, count, tokens))) for tensor in tensors]


def _drawn(
    graph: Graph | None, tensor: Tensor, count: int, tokens: int
) -> Iterator[NDArray[np.generic]]:
    """Yield inputs one by one, so that no more than one is there in a wider type."""
    rng = np.random.default_rng([0, zlib.crc32(tensor.name.encode())])
    kind = np.dtype(tensor.dtype).kind
    low, high = (0.0, 1.0) if kind == "b" else _range(graph, tensor, tokens)
    for at in range(count):
        unit = _likely(rng, tensor.shape, at // 2) if at % 2 == 0 else None
        if unit is None:
            unit = rng.random(tensor.shape, np.float32)
        values = low + (high - low) * unit
        yield (np.rint(values) if kind in "iub" else values).astype(tensor.dtype)


def _likely(
    rng: np.random.Generator, shape: tuple[int, ...], at: int
) -> NDArray[np.float32] | None:
    """Return what a model may be made for, from 0 to 1; None where its shape tells nothing.

    Args:
        rng: generator that the input is drawn from.
        shape: shape of the input.
        at: position among the likely inputs, from 0.

    """
    if _is_sound(shape):
        wave = np.roll(sample_sound(at % SOUNDS, prod(shape)), int(rng.integers(prod(shape))))
        loudness = rng.uniform(_QUIETEST, 1.0)
        return np.asarray((loudness * wave + 1) / 2, np.float32).reshape(shape)
    if not _is_picture(shape):
        return None
    return sample_picture(at, *shape[1:]).reshape(shape) if at < PICTURES else _smooth(rng, shape)


def own_samples(tensors: Sequence[Tensor], count: int) -> int:
    """Return how many of drawn inputs have a picture or a sound of the package."""
    every_second = (count + 1) // 2
    if any(_is_sound(tensor.shape) for tensor in tensors):
        return every_second
    pictures = any(_is_picture(tensor.shape) for tensor in tensors)
    return min(PICTURES, every_second) if pictures else 0


def _is_picture(shape: tuple[int, ...]) -> bool:
    return len(shape) == 4 and shape[-1] in _CHANNELS and min(shape[1:3]) > 1


def _is_sound(shape: tuple[int, ...]) -> bool:
    return prod(shape) == max(shape, default=0) >= _LEAST_SOUND


def _smooth(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return noise that changes slowly, from 0 to 1: (1, height, width, channels)."""
    _, height, width, channels = shape
    coarse = rng.random((_COARSEST, _COARSEST, channels), np.float32)
    one = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.asarray(np.clip(one, 0.0, 1.0), np.float32).reshape(shape)


def _range(graph: Graph | None, tensor: Tensor, tokens: int) -> tuple[float, float]:
    """Return between which raw values an input is drawn."""
    if np.dtype(tensor.dtype).kind in "iu":
        info = np.iinfo(tensor.dtype)
        return (info.min, info.max) if tensor.scale else (0, min(tokens - 1, info.max))
    for at in () if graph is None else graph.inputs:
        if graph is not None and graph.tensors[at].name == tensor.name:
            readers = [
                layer for layer in graph.layers if at in layer.inputs and layer.name == "QUANTIZE"
            ]
            known = [range_of(graph.tensors[reader.outputs[0]]) for reader in readers]
            if known and known[0] is not None:
                return known[0].low, known[0].high
    return -1.0, 1.0


@dataclass(frozen=True, slots=True)
class DrawnCheck:
    """A compressed model that is checked on drawn inputs.

    Attributes:
        pair: pair of the model alone, without inputs.
        device: a connected device; its owner closes it.
        stopped: whether to come to an end.
        progress: is called with the name of a phase, the number of inputs that are done, and that
            of all.

    """

    pair: Pair
    device: Device
    stopped: Callable[[], bool]
    progress: Callable[[str, int, int], None]

    def run(self) -> tuple[DrawnFigures, SeenLayers | str]:
        """Return what the device does, and what its layers show or why they were not seen.

        Raises:
            UserError: the host or the device refuses the model.

        """
        with ExitStack() as stack:
            path = self.pair.compressed
            twin = stack.enter_context(closing(open_tflite(path, TWIN_KERNELS, ONCE)))
            session = self.device.open(path, ONCE)
            graph = _graph(path)
            drawn_for = None if graph is None else graph.graph
            tensors = twin.signature.inputs
            size = sum(map(tensor_bytes, tensors))
            count = max(_LAYER_INPUTS, min(INPUTS, _MOST_BYTES // max(1, size)))
            for tokens in _TOKENS:
                arrays = drawn_inputs(drawn_for, tensors, count, tokens)
                rows = pack_rows(tensors, arrays)
                wanted = twin.submit(rows).result()
                if 2 * len(wanted.failures) <= count:
                    break
            figures = self._figures(twin, session, rows, wanted)
            return figures, self._layers(graph, tensors, arrays, stack)

    def _figures(
        self,
        twin: TFLiteModel,
        session: Evaluator,
        rows: NDArray[np.generic],
        wanted: RawBatch,
    ) -> DrawnFigures:
        got = session.submit(rows).result()
        again = session.submit(rows[:_REPEATED][::-1].copy()).result()
        self.progress("answers", len(rows), len(rows))
        known = self._known
        tensors = session.signature.outputs
        failed = {*wanted.failures, *got.failures}
        both = [at for at in range(len(rows)) if at not in failed]
        theirs, mine = _real(twin, wanted, both), _real(session, got, both)
        finite = [
            all(np.isfinite(output[at]).all() for output in theirs) for at in range(len(both))
        ]
        repeated = again.outputs[::-1]
        return DrawnFigures(
            device=known,
            inputs=len(rows),
            samples=own_samples(twin.signature.inputs, len(rows)),
            failed_here=dict(Counter(got.failures.values())),
            failed_alone=len(got.failures.keys() - wanted.failures.keys()),
            answered=sum(finite),
            outputs=tuple(map(_output, tensors, theirs, mine)),
            repeated=len(repeated),
            unsteady=sum(
                output.tobytes() != other.tobytes()
                for output, other in zip(got.outputs, repeated, strict=False)
            ),
            variants=self._variants(rows),
            warnings=tuple(undelegated([known])),
        )

    @property
    def _known(self) -> RunDevice:
        return RunDevice.of(self.device)

    def _variants(self, rows: NDArray[np.generic]) -> tuple[InvocationVariant, ...]:
        few = rows[:VARIED]

        def ask(model: Evaluator) -> ReadOutputs:
            return ReadOutputs(model.signature.outputs, model.submit(few).result())

        return device_variants(self.device, self.pair.compressed, ONCE, ask, self.stopped)

    def _layers(
        self,
        graph: LayeredModel | None,
        tensors: Sequence[Tensor],
        arrays: Sequence[NDArray[np.generic]],
        stack: ExitStack,
    ) -> SeenLayers | str:
        if graph is None:
            return "the graph cannot be read"
        if why := reason_not_seen(ONCE, len(tensors)):
            return why
        comparison = LayerComparison(graph, probe_on_host, None, device_side(self.device))
        stack.enter_context(closing(comparison))
        inputs = tuple(ComparedInput(array, None) for array in arrays[0][:_LAYER_INPUTS])
        compare_layers(
            comparison, inputs, lambda done, of: self.progress("layers", done, of), self.stopped
        )
        if not comparison.inputs:
            return "; ".join(comparison.notes.lines()) or "there was no time left for them"
        table = OpenedLayers(comparison, inputs, TWIN_KERNELS, self._known).document(self.pair)
        return SeenLayers(
            inputs=table.inputs,
            layers=len(table.layers),
            matched=0,
            faults=(),
            other_constants=0,
            sensitive="",
            on_device={self.device.profile.name: tuple(wrong_in_words(table))},
            together=together_on_device(table),
            notes=table.notes,
        )


def _graph(path: Path) -> LayeredModel | None:
    try:
        content = with_fixed_shapes(read_model_file(path), str(path), ONCE)
        return LayeredModel(Graph(content, str(path)), content)
    except UserError:
        return None


def _real(model: Evaluator, batch: RawBatch, places: Sequence[int]) -> list[NDArray[np.float64]]:
    """Return the real values of each output, (places, values), of some inputs."""
    tensors = model.signature.outputs
    return [
        dequantize(values[list(places)], tensor).reshape(len(places), -1)
        for tensor, values in zip(tensors, unpack_rows(tensors, batch.outputs), strict=True)
    ]


def _output(tensor: Tensor, wanted: NDArray[np.float64], got: NDArray[np.float64]) -> DrawnOutput:
    """Return how an output of the device is, of inputs that both sides answered."""
    sums = ErrorSums(tensor.scale or None)
    for values, other in zip(wanted, got, strict=True):
        sums.add(values, other)
    odd, odd_there = ((~np.isfinite(values)).any(axis=1) for values in (got, wanted))
    return DrawnOutput(
        output=tensor.name,
        error=sums.figures(),
        not_finite=int(odd.sum()),
        not_finite_alone=int((odd & ~odd_there).sum()),
        constant=_constant(got),
        constant_on_host=_constant(wanted),
        share_at_limits=_railed(tensor, got),
    )


def _constant(values: NDArray[np.float64]) -> bool:
    return len(values) > 1 and bool((values == values[:1]).all())


def _railed(tensor: Tensor, values: NDArray[np.float64]) -> float:
    """Return the share of values at an end of the range of a quantized output."""
    if tensor.range is None or not values.size:
        return 0.0
    return float(sum(np.isclose(values, end).mean() for end in tensor.range))


PICTURES: Final = 8
"""How many pictures there are."""

SOUNDS: Final = 4
"""How many sounds there are."""

_WITH_ALPHA: Final = 4
"""Channels of a picture with transparency."""


def sample_picture(at: int, height: int, width: int, channels: int) -> NDArray[np.float32]:
    """Return a picture, stretched to a size.

    Args:
        at: number of the sample, from 0.
        height: in pixels.
        width: in pixels.
        channels: 1 for brightness, 3 for red, green and blue, 4 with an opaque fourth one.

    Returns:
        From 0 to 1: (height, width, channels).

    """
    one = cv2.resize(_samples()["pictures"][at], (width, height), interpolation=cv2.INTER_LINEAR)
    if channels == 1:
        one = cv2.cvtColor(one, cv2.COLOR_RGB2GRAY)[..., None]
    if channels == _WITH_ALPHA:
        one = cv2.cvtColor(one, cv2.COLOR_RGB2RGBA)
    return np.asarray(one / 255, np.float32)


def sample_sound(at: int, values: int) -> NDArray[np.float32]:
    """Return a sound, stretched to a number of values.

    Args:
        at: number of the sample, from 0.
        values: how many values the sound has.

    Returns:
        From -1 to 1: (values,).

    """
    wave = _samples()["sounds"][at].astype(np.float32)
    places = np.linspace(0, len(wave) - 1, values)
    stretched = np.interp(places, np.arange(len(wave)), wave / np.abs(wave).max())
    return np.asarray(stretched, np.float32)


@cache
def _samples() -> dict[str, NDArray[Any]]:
    with files("edgeflare.release").joinpath("samples.npz").open("rb") as file:
        return dict(np.load(file))
