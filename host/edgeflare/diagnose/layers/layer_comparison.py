"""The layers of a pair, opened, and looked into on one input after the other.

*Entire* is how far a layer's output is off in the network, where the errors of all layers before
add up. *Single* is how far the twin's operator by itself is off from the original's, both given the
original's values, rounded as the twin's reads them. The *sensitivity* of a layer is by how much the
margin of the original's decision changes where that error is added to its output, and nothing else
is changed.

A device is held against the twin: entire where its runtime captures all tensors, single where both
run each operator by itself, given the same. What an accelerator shows of its inner tensors in other
ways is not what it computes with, also where the model's output is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from edgeflare.campaign.pair_panel import host_arm
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.seeds import SeedChoice, Seeds, spread_order
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.arm_probe import OpenProbe, ProbedArm, State
from edgeflare.diagnose.layer_difference import LayerName, layer_name
from edgeflare.diagnose.layer_graphs import (
    LayeredModel,
    layered_compressed,
    layered_original,
    reason_not_seen,
    tflite_original,
)
from edgeflare.diagnose.layers.device_comparison import DeviceComparison, DeviceSide
from edgeflare.diagnose.layers.layer_figures import ComparisonNotes, LayerFigures, RangeUse
from edgeflare.diagnose.layers.layers_document import LayersDocument
from edgeflare.diagnose.layers.original_comparison import OriginalComparison, OriginalSide
from edgeflare.diagnose.output_stage import ModelReader, OutputStage
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.model_probe import HostProbe, ProbeFailed, Values
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.run.run_document import RunDevice
from edgeflare_protos import __version__


class LayerComparison:
    """Looks into the layers of a pair, input by input.

    Args:
        compressed: the compressed model.
        twin: opens models on the host, with the twin's kernels; its second argument is true to
            capture tensors.
        original: None where there is none whose layers can be seen.
        device: None where none is asked.

    Attributes:
        notes: what could not be seen.
        inputs: how many inputs were looked into.

    """

    def __init__(
        self,
        compressed: LayeredModel,
        twin: OpenProbe,
        original: OriginalSide | None,
        device: DeviceSide | None,
    ) -> None:
        self._graph = compressed.graph
        self.notes = ComparisonNotes()
        self.inputs = 0
        self._twin = ProbedArm(compressed.graph, compressed.content, twin)
        self._original = None
        if original is not None:
            self._original = OriginalComparison(self._graph, original, twin, self.notes)
        self._device = None
        if device is not None:
            self._device = DeviceComparison(compressed, device, self.notes)

    def close(self) -> None:
        """Close all that was opened."""
        self._twin.close()
        for side in (self._original, self._device):
            if side is not None:
                side.close()

    def add(self, input_: ComparedInput, stopped: Callable[[], bool] = lambda: False) -> None:
        """Look into an input; what takes long on a device ends where it is stopped."""
        try:
            outputs = self._twin.outputs([input_.encoded])
            twin = self._twin.observe([input_.encoded], outputs)
        except (ProbeFailed, UserError) as failed:
            self.notes.add("twin", f"the twin gives no answer: {failed}")
            return
        if twin.method is None:
            self.notes.add("layers", "the twin's layers cannot be seen")
        seen = self._original is None and self._device is None
        try:
            if self._original is not None and input_.original is not None:
                seen = self._add_original(self._original, input_.original, twin.state, input_)
            if self._device is not None:
                state = {**outputs, **twin.state}
                self._device.add(self._twin, input_.encoded, state, stopped)
                seen = True
        finally:  # a device that is lost takes nothing back of what was counted
            self.inputs += seen

    def _add_original(
        self, side: OriginalComparison, given: Values, twin: State, input_: ComparedInput
    ) -> bool:
        """Hold the twin's layers against the original's; return whether these are seen."""
        try:
            side.add(self._twin, twin, given, sensitivity=input_.sensitivity)
        except (ProbeFailed, UserError) as failed:
            self.notes.add("original", f"the original's layers cannot be seen: {failed}")
            return False
        return True

    @property
    def input_range(self) -> RangeUse | None:
        """How the range of the compressed model's input goes with the original's inputs."""
        return None if self._original is None else self._original.input_range

    @property
    def outputs_differ(self) -> int | None:
        """How many inputs device and twin give other outputs on; None without a device."""
        return None if self._device is None else self._device.outputs_differ

    @property
    def together(self) -> tuple[LayerName, ...]:
        """Operators that the device computes rightly by themselves and wrongly together."""
        found = () if self._device is None else self._device.together
        return tuple(layer_name(self._graph, self._graph.operators[op]) for op in found)

    def figures(self) -> Iterator[LayerFigures]:
        """Yield what is known of each layer, in execution order."""
        for layer in self._graph.layers:
            if not layer.outputs or not self._graph.tensors[layer.outputs[0]].has_values:
                continue
            known = LayerFigures(layer=layer_name(self._graph, layer))
            for side in (self._original, self._device):
                if side is not None:
                    known = side.completed(known, layer)
            yield known


@dataclass(frozen=True, slots=True)
class ComparedInput:
    """An input that layers are looked into on.

    Attributes:
        encoded: (1, *input shape without its batch dimension), as the compressed model takes it.
        original: likewise as the original takes it; None without one.
        sensitivity: whether that is measured on it.

    """

    encoded: Values
    original: Values | None
    sensitivity: bool = False


def compare_layers(
    layers: LayerComparison,
    inputs: Sequence[ComparedInput],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Look into inputs until they are done or it is stopped.

    Args:
        layers: looks into them.
        inputs: those to be looked into.
        progress: is called with the number of inputs that are done, and that of all.
        stopped: whether the user wants to stop.

    """
    for at, input_ in enumerate(inputs):
        if stopped():
            return
        layers.add(input_, stopped)
        progress(at + 1, len(inputs))


@dataclass(frozen=True, slots=True)
class OpenedLayers:
    """The layers of a pair.

    Attributes:
        comparison: looks into them.
        inputs: inputs of the pair; those come first on which the sensitivity is measured.
        kernels: kernels of the twin.
        device: the device that is asked; None without one.

    """

    comparison: LayerComparison
    inputs: tuple[ComparedInput, ...]
    kernels: str
    device: RunDevice | None

    def document(self, pair: Pair, fingerprint: str = "") -> LayersDocument:
        """Return what was seen so far, of one input at least, as the document of a layer table.

        Args:
            pair: the pair.
            fingerprint: its fingerprint where that is known, since it is read from all files of a
                set.

        """
        seen = self.comparison
        return LayersDocument(
            edgeflare=__version__,
            pair=pair.name,
            fingerprint=fingerprint or pair.fingerprint(),
            source=pair.seeds.name,
            kernels=self.kernels,
            device=self.device,
            outputs_differ=seen.outputs_differ,
            together=seen.together,
            inputs=seen.inputs,
            inputs_requested=len(self.inputs),
            input_range=seen.input_range,
            layers=tuple(seen.figures()),
            notes=tuple(seen.notes.lines()),
        )


def open_layers(
    pair: Pair, limit: int, sensitivity_inputs: int, profile: Profile | None, stack: ExitStack
) -> OpenedLayers:
    """Open the layers of a pair; `stack` closes them.

    Args:
        pair: what the user brings. Its shapes are folded here, where it says so.
        limit: how many of its inputs are looked into, at most.
        sensitivity_inputs: on how many of them the sensitivity is measured, at most.
        profile: the device that is asked; None for none.
        stack: closes what is opened.

    Raises:
        UserError: a model, the seeds or the profile is not what it should be; or there is nothing
            that the compressed model could be held against.

    """
    pair = stack.enter_context(with_shapes_folded(pair))
    twin = stack.enter_context(closing(open_compressed(pair, TWIN_KERNELS)))
    if why := reason_not_seen(pair.interface.invocation, len(twin.signature.inputs)):
        raise UserError(f"{pair.name}: its layers are not seen: {why}")
    inputs = ModelInputs(pair.interface, twin.signature.inputs, str(pair.compressed))
    seeds = inputs.load(pair.seeds, SeedChoice(limit=limit), pair.classes)
    encoded = inputs.encoder().encode(seeds.inputs)
    rows = [row.reshape(twin.signature.input.shape) for row in encoded]
    original, note = None, ""
    theirs: list[Values | None] = [None] * len(rows)
    try:
        tflite_original(pair)
    except UserError as refused:
        note = str(refused)
        if profile is None:
            raise UserError(
                f"{pair.name}: {note}, so there is nothing to hold its layers against: give"
                " --original a .tflite, or --device a device"
            ) from None
    else:
        original, theirs = _original(pair, inputs, seeds, stack)
    side, device = None, None
    if profile is not None:
        connected = stack.enter_context(connect(profile))
        side = device_side(connected)
        device = RunDevice.of(connected)
    comparison = LayerComparison(
        layered_compressed(pair),
        probe_on_host,
        original,
        side,
    )
    stack.enter_context(closing(comparison))
    if note:
        comparison.notes.add("no original", note)
    # Whatever it is stopped after is of all labels.
    compared = tuple(
        ComparedInput(rows[at], theirs[at], number < sensitivity_inputs)
        for number, at in enumerate(spread_order(len(rows), seeds.labels).tolist())
    )
    return OpenedLayers(comparison, compared, TWIN_KERNELS, device)


def device_side(device: Device) -> DeviceSide:
    """Return a connected device as the side that runs the compressed model."""
    return DeviceSide(
        lambda model, capture: device.probe(model, capture=capture), device.payload_limit_bytes
    )


def probe_on_host(model: bytes, capture: bool) -> HostProbe:
    """Open a model on the host with the twin's kernels, to capture tensors or not."""
    return HostProbe(model, TWIN_KERNELS, capture=capture)


def _original(
    pair: Pair, inputs: ModelInputs, seeds: Seeds, stack: ExitStack
) -> tuple[OriginalSide, list[Values | None]]:
    """Open the original; return it, and the seeds as it takes them."""
    model = stack.enter_context(closing(open_original(pair, inputs)))
    its = ModelInputs(pair.interface, model.signature.inputs, str(pair.original), like=inputs)
    arm = host_arm(pair, str(pair.original), model, its, seeds)
    stage = OutputStage(pair.interface, arm.decoder, model.makers())
    encoded = its.encoder().encode(seeds.inputs)
    rows: list[Values | None] = [row.reshape(model.signature.input.shape) for row in encoded]
    return OriginalSide(layered_original(pair), ModelReader(stage, model.signature)), rows
