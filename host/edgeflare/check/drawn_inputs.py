"""A compressed model alone on a device: inputs that are drawn, and whether the host agrees.

Without an original nobody can say whether the model is good, and without data not what it decides
in the field. What a device does can still be told: whether its outputs are the host's, finite, not
all the same and not at the ends of their range, whether they are the same a second time, and which
operator by itself is computed otherwise.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.check.figures import DrawnFigures, DrawnOutput, SeenLayers
from edgeflare.core.tensor import RawBatch, Tensor, dequantize, pack_rows, unpack_rows
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.layered_models import LayeredModel, reason_not_seen
from edgeflare.diagnose.layers.device_comparison import DeviceSide
from edgeflare.diagnose.layers.layer_comparison import (
    ComparedInput,
    LayerComparison,
    compare_layers,
)
from edgeflare.diagnose.layers.layer_figures import ErrorSums
from edgeflare.diagnose.layers.layers_page import wrong_in_words
from edgeflare.diagnose.layers.opened_layers import OpenedLayers
from edgeflare.errors import UserError
from edgeflare.models.evaluator import ONCE, Evaluator
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.pair import Pair
from edgeflare.models.quantized_range import range_of
from edgeflare.models.shape_folding import with_fixed_shapes
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare.models.tflite_graph import Graph
from edgeflare.run.run_document import RunDevice
from edgeflare.run.run_warnings import undelegated

INPUTS: Final = 64
"""Inputs that are drawn."""

_LAYER_INPUTS: Final = 8
"""Of these, how many the layers are compared on."""

_REPEATED: Final = 16
"""Of these, how many the device is given once more."""

_TOKENS: Final = 100
"""Whole numbers without a scale, such as words, are drawn below this."""

_COARSEST: Final = 4
"""Values along each side of the noise that a smooth picture is made of."""

_CHANNELS: Final = (1, 3, 4)
"""Channels of what may be a picture."""


def drawn_inputs(
    graph: Graph | None, tensors: Sequence[Tensor], count: int
) -> list[NDArray[np.generic]]:
    """Return inputs that are drawn within the range of each input tensor.

    Whole numbers with a scale are drawn over all of their type, those without below 100; floats
    within the range that the graph quantizes them to, else from -1 to 1. Of what may be a picture
    every second one is smooth, since sums of noise cancel each other.

    Args:
        graph: of the model; None where it cannot be read.
        tensors: its inputs.
        count: how many inputs.

    Returns:
        For each tensor (count, *shape), in its dtype.

    """
    return [_drawn(graph, tensor, count) for tensor in tensors]


def _drawn(graph: Graph | None, tensor: Tensor, count: int) -> NDArray[np.generic]:
    rng = np.random.default_rng([0, zlib.crc32(tensor.name.encode())])
    shape = (count, *tensor.shape)
    kind = np.dtype(tensor.dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(tensor.dtype)
    unit = rng.random(shape)
    if _may_be_picture(tensor):
        unit[::2] = _smooth(rng, unit[::2].shape)
    low, high = _range(graph, tensor)
    values = low + (high - low) * unit
    return (np.rint(values) if kind in "iu" else values).astype(tensor.dtype)


def _may_be_picture(tensor: Tensor) -> bool:
    return len(tensor.shape) == 4 and tensor.shape[-1] in _CHANNELS and min(tensor.shape[1:3]) > 1


def _smooth(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return noise that changes slowly, from 0 to 1: (count, 1, height, width, channels)."""
    height, width, channels = shape[2:]
    pictures = []
    for _ in range(shape[0]):
        coarse = rng.random((_COARSEST, _COARSEST, channels))
        one = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
        pictures.append(np.clip(one, 0.0, 1.0).reshape(1, height, width, channels))
    return np.stack(pictures)


def _range(graph: Graph | None, tensor: Tensor) -> tuple[float, float]:
    """Return between which raw values an input is drawn."""
    if np.dtype(tensor.dtype).kind in "iu":
        info = np.iinfo(tensor.dtype)
        return (info.min, info.max) if tensor.scale else (0, min(_TOKENS, info.max))
    for at in () if graph is None else graph.inputs:
        if graph is not None and graph.tensors[at].name == tensor.name:
            readers = [one for one in graph.layers if at in one.inputs and one.name == "QUANTIZE"]
            known = [range_of(graph.tensors[one.outputs[0]]) for one in readers]
            if known and known[0] is not None:
                return known[0].low, known[0].high
    return -1.0, 1.0


@dataclass(frozen=True, slots=True)
class DrawnCheck:
    """A compressed model that is checked on drawn inputs.

    Attributes:
        pair: that of the model alone, without inputs.
        profile: the device.
        stopped: whether to come to an end.
        progress: is called with the name of a phase, the number of inputs that are done, and that
            of all.

    """

    pair: Pair
    profile: Profile
    stopped: Callable[[], bool]
    progress: Callable[[str, int, int], None]

    def run(self) -> tuple[DrawnFigures, SeenLayers | str]:
        """Return what the device does, and what its layers show or why they were not seen.

        Raises:
            UserError: the host or the device refuses the model.
            InfrastructureError: the device or a worker process is lost.

        """
        with ExitStack() as stack:
            path = self.pair.compressed
            twin = stack.enter_context(closing(open_tflite(path, TWIN_KERNELS, ONCE)))
            device = stack.enter_context(connect(self.profile))
            session = device.open(path, ONCE)
            graph = _graph(path)
            tensors = twin.signature.inputs
            arrays = drawn_inputs(None if graph is None else graph.graph, tensors, INPUTS)
            figures = self._figures(device, twin, session, pack_rows(tensors, arrays))
            return figures, self._layers(device, graph, tensors, arrays, stack)

    def _figures(
        self, device: Device, twin: TFLiteModel, session: Evaluator, rows: NDArray[np.generic]
    ) -> DrawnFigures:
        wanted, got = twin.submit(rows).result(), session.submit(rows).result()
        again = session.submit(rows[:_REPEATED]).result()
        self.progress("answers", len(rows), len(rows))
        known = RunDevice(name=self.profile.name, provenance=device.provenance)
        outputs = session.signature.outputs
        return DrawnFigures(
            device=known,
            inputs=len(rows),
            failed_here=dict(Counter(got.failures.values())),
            failed_on_host=dict(Counter(wanted.failures.values())),
            outputs=tuple(
                _output(tensor, first, second)
                for tensor, first, second in zip(
                    outputs, _real(twin, wanted), _real(session, got), strict=True
                )
            ),
            repeated=len(again.outputs),
            unsteady=sum(
                one.tobytes() != other.tobytes()
                for one, other in zip(got.outputs, again.outputs, strict=False)
            ),
            warnings=tuple(undelegated([known])),
        )

    def _layers(
        self,
        device: Device,
        graph: LayeredModel | None,
        tensors: Sequence[Tensor],
        arrays: Sequence[NDArray[np.generic]],
        stack: ExitStack,
    ) -> SeenLayers | str:
        if graph is None:
            return "the graph cannot be read"
        if why := reason_not_seen(ONCE, len(tensors)):
            return why
        side = DeviceSide(
            lambda model, capture: device.probe(model, capture=capture), device.payload_limit_bytes
        )
        comparison = LayerComparison(
            graph,
            lambda model, capture: HostProbe(model, TWIN_KERNELS, capture=capture),
            None,
            side,
        )
        stack.enter_context(closing(comparison))
        inputs = tuple(ComparedInput(one, None) for one in arrays[0][:_LAYER_INPUTS])
        compare_layers(
            comparison, inputs, lambda done, of: self.progress("layers", done, of), self.stopped
        )
        if not comparison.inputs:
            return "; ".join(comparison.notes.lines()) or "there was no time left for them"
        known = RunDevice(name=self.profile.name, provenance=device.provenance)
        table = OpenedLayers(comparison, inputs, TWIN_KERNELS, known).document(self.pair)
        return SeenLayers(
            inputs=table.inputs,
            layers=len(table.layers),
            matched=0,
            faults=(),
            other_constants=0,
            sensitive="",
            on_device={self.profile.name: tuple(wrong_in_words(table))},
            notes=table.notes,
        )


def _graph(path: Path) -> LayeredModel | None:
    try:
        content = with_fixed_shapes(read_model_file(path), str(path), ONCE)
        return LayeredModel(Graph(content, str(path)), content)
    except UserError:
        return None


def _real(model: Evaluator, batch: RawBatch) -> Iterator[NDArray[np.float64]]:
    """Yield the real values of each output, (answered, values), of inputs that were answered."""
    tensors = model.signature.outputs
    answered = [at for at in range(len(batch.outputs)) if at not in batch.failures]
    for tensor, values in zip(tensors, unpack_rows(tensors, batch.outputs), strict=True):
        yield dequantize(values, tensor).reshape(len(batch.outputs), -1)[answered]


def _output(tensor: Tensor, wanted: NDArray[np.float64], got: NDArray[np.float64]) -> DrawnOutput:
    """Return how an output of the device is."""
    sums = ErrorSums(tensor.scale or None)
    for one, other in zip(wanted, got, strict=False):
        sums.add(one, other)
    finite = np.isfinite(got)
    return DrawnOutput(
        output=tensor.name,
        error=sums.figures(),
        not_finite=int((~finite.all(axis=1)).sum()),
        not_finite_on_host=int((~np.isfinite(wanted).all(axis=1)).sum()),
        constant=len(got) > 1 and bool((got == got[:1]).all()),
        constant_on_host=len(wanted) > 1 and bool((wanted == wanted[:1]).all()),
        railed=_railed(tensor, got),
    )


def _railed(tensor: Tensor, values: NDArray[np.float64]) -> float:
    """Return the share of values at an end of the range of a quantized output."""
    if np.dtype(tensor.dtype).kind not in "iu" or not tensor.scale or not values.size:
        return 0.0
    info = np.iinfo(tensor.dtype)
    ends = [(end - tensor.zero_point) * tensor.scale for end in (info.min, info.max)]
    return float(np.isclose(values, ends[0]).mean() + np.isclose(values, ends[1]).mean())
