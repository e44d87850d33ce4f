"""The layers of a pair, opened: both models, the inputs, and the device that is asked."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass

from edgeflare import __version__
from edgeflare.campaign.pair_panel import host_arm
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.seeds import SeedChoice, Seeds
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.layer_graphs import (
    layered_compressed,
    layered_original,
    reason_not_seen,
    tflite_original,
)
from edgeflare.diagnose.layers.device_comparison import DeviceSide
from edgeflare.diagnose.layers.layer_comparison import ComparedInput, LayerComparison
from edgeflare.diagnose.layers.layers_document import LayersDocument
from edgeflare.diagnose.layers.original_comparison import OriginalSide
from edgeflare.diagnose.output_stage import ModelReader, OutputStage
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.model_probe import HostProbe, Values
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.run.run_document import RunDevice


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

    def document(self, pair: Pair) -> LayersDocument:
        """Return what was seen so far, of one input at least, as the document of a layer table."""
        seen = self.comparison
        return LayersDocument(
            edgeflare=__version__,
            pair=pair.name,
            fingerprint=pair.fingerprint(),
            source=pair.seeds.name,
            kernels=self.kernels,
            device=self.device,
            outputs_differ=seen.outputs_differ,
            together=seen.together,
            inputs=seen.inputs,
            asked=len(self.inputs),
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
        device = RunDevice(name=profile.name, provenance=connected.provenance)
    comparison = LayerComparison(
        layered_compressed(pair),
        probe_on_host,
        original,
        side,
    )
    stack.enter_context(closing(comparison))
    if note:
        comparison.notes.add("no original", note)
    measured = set(_spread(seeds, sensitivity_inputs))
    order = sorted(range(len(rows)), key=lambda at: at not in measured)
    compared = tuple(ComparedInput(rows[at], theirs[at], at in measured) for at in order)
    return OpenedLayers(comparison, compared, TWIN_KERNELS, device)


def device_side(device: Device) -> DeviceSide:
    """Return a connected device as the side that runs the compressed model."""
    return DeviceSide(
        lambda model, capture: device.probe(model, capture=capture), device.payload_limit_bytes
    )


def probe_on_host(model: bytes, capture: bool) -> HostProbe:
    """Open a model on the host with the twin's kernels, to capture tensors or not."""
    return HostProbe(model, TWIN_KERNELS, capture=capture)


def _spread(seeds: Seeds, count: int) -> list[int]:
    """Return the positions of some seeds, of each label its share."""
    if not count:
        return []
    return list(map(int, SeedChoice(limit=count).places(len(seeds.inputs), seeds.labels)))


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
