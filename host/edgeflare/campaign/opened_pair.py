"""Opening a pair for a campaign: the host's models, the seeds and the devices, as one panel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from edgeflare.campaign.pair_checks import (
    require_class_names,
    require_original,
    require_same_classes,
)
from edgeflare.campaign.panel import ArmModel, Panel
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.campaign.plan_defaults import default_ensemble
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.input import Input
from edgeflare.core.query import Query
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.session import DeviceSession
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import HostModel
from edgeflare.models.original import open_original
from edgeflare.models.other_runtime import open_in_other_runtime
from edgeflare.models.pair import Pair
from edgeflare.models.preprocess import Encoder
from edgeflare.models.seeds import Seeds, load_seeds
from edgeflare.models.signature import image_shape
from edgeflare.models.tflite import Kernels, OperatorMissing, TFLiteModel, open_tflite
from edgeflare.run.plan import Plan
from edgeflare.tasks.classification import ClassDecoder, Outputs, detect_outputs

ImageShape = tuple[int, int, int]
"""Height, width, channels."""

_SEEDS_FOR_DETECTION = 32
"""Seeds whose outputs tell logits from probabilities."""


_IMAGES_IN_BATCH = 64
"""Images in one message, where nothing but their answers is wanted."""


@dataclass(frozen=True, slots=True)
class OpenedPair:
    """A pair whose models, seeds and devices are open, and the time that opening took."""

    pair: Pair
    seeds: Seeds
    panel: Panel
    devices: tuple[Device, ...]
    ensemble: tuple[Kernels, ...]
    opening_seconds: float

    @property
    def image_shape(self) -> ImageShape:
        """The shape of the images that the models take."""
        height, width, channels = self.seeds.images.shape[1:]
        return height, width, channels

    def pipeline(self, stopped: Callable[[], bool] = lambda: False) -> Pipeline[Any]:
        """Return an empty pipeline outside a campaign; it waits for no device to cool down."""
        return Pipeline(self.panel, lambda index: self.devices[index].reopen(stopped), lambda: None)

    def evaluate(
        self,
        images: Sequence[Input],
        seed_ids: Sequence[int],
        arms: tuple[Arm, ...],
        stopped: Callable[[], bool] = lambda: False,
    ) -> Iterator[EvaluatedQuery]:
        """Evaluate images on some arms, batch after batch; none of it is recorded.

        Args:
            images: each HWC uint8.
            seed_ids: the seed that each of them comes from, which decides the device.
            arms: the arms to ask.
            stopped: whether the user wants to stop; no other batch begins then.

        Yields:
            What was answered, in the order of the images.

        Raises:
            InfrastructureError: a device or a worker process is lost for good.

        """
        pipeline = self.pipeline(stopped)
        parts = takewhile(lambda _: not stopped(), range(0, len(images), _IMAGES_IN_BATCH))
        batches = (
            (None, [Query(image, arms) for image in images[part]], seed_ids[part])
            for part in (slice(at, at + _IMAGES_IN_BATCH) for at in parts)
        )
        for batch in pipeline.stream(batches):
            yield from batch.evaluated


def open_pair(
    pair: Pair,
    plan: Plan,
    profiles: Sequence[Profile],
    stack: ExitStack,
    seeds_for: Callable[[ImageShape], Seeds] | None = None,
) -> OpenedPair:
    """Open a pair's models and its seeds, and the devices; `stack` closes them.

    Args:
        pair: what the user brings.
        plan: says what is looked for, how many seeds are taken, and the members of the ensemble.
            Where it names no kernel set, the default is opened: see `default_ensemble`.
        profiles: the devices, at least one; they share the seeds out.
        stack: closes what is opened.
        seeds_for: returns the seeds, given the shape of the images that the models take; by default
            the pair's own, up to the plan's limit.

    Raises:
        UserError: a model, the seeds or a profile is not what it should be.
        InfrastructureError: a device or a worker process does not come up.

    """
    require_original(pair, plan.goal.find)
    begun = time.monotonic()
    ensemble = plan.ensemble or default_ensemble(pair, plan.goal.find)
    twin = stack.enter_context(closing(_open_twin(pair, profiles[0], ensemble[0])))
    require_class_names(pair, twin)
    shape = image_shape(twin.signature.input)
    if seeds_for is None:
        seeds = load_seeds(pair.seeds, shape, pair.preprocess.resize, plan.limit)
    else:
        seeds = seeds_for(shape)
    hosts: dict[Arm, ArmModel] = {}
    if pair.original is not None:
        original = stack.enter_context(closing(open_original(pair.original, twin.signature.input)))
        hosts[Arm.ORIGINAL] = _host_arm(pair, original, seeds)
        require_same_classes(pair, original, twin)
    hosts[Arm.TWIN] = _host_arm(pair, twin, seeds)
    devices = tuple(stack.enter_context(connect(profile)) for profile in profiles)
    on_devices = [
        replace(hosts[Arm.TWIN], evaluator=_open_on_device(pair, device, twin))
        for device in devices
    ]
    members: dict[str, ArmModel] = {
        kernels: replace(
            hosts[Arm.TWIN],
            evaluator=stack.enter_context(closing(open_tflite(pair.compressed, kernels))),
        )
        for kernels in ensemble[1:]
    }
    for member in plan.elsewhere:
        model = stack.enter_context(open_in_other_runtime(pair.compressed, member))
        members[member] = replace(hosts[Arm.TWIN], evaluator=model)
    panel = Panel(hosts, on_devices, members)
    return OpenedPair(pair, seeds, panel, devices, ensemble, time.monotonic() - begun)


def _open_twin(pair: Pair, profile: Profile, kernels: Kernels) -> TFLiteModel:
    try:
        return open_tflite(pair.compressed, kernels)
    except OperatorMissing as missing:
        raise UserError(f"{missing} (the host; {profile.name} {_runtime(profile)})") from None


def _runtime(profile: Profile) -> str:
    """Return which runtime a device has, as the end of a sentence about another mistake."""
    try:
        with connect(profile) as device:
            there = device.provenance
    except InfrastructureError:
        return "cannot be asked what it has"
    return f"has {there.runtime} {there.runtime_version}"


def _open_on_device(pair: Pair, device: Device, twin: TFLiteModel) -> DeviceSession:
    try:
        return device.open(pair.compressed)
    except UserError as refused:
        raise UserError(f"{refused} (the host's {twin.runtime} takes it)") from None


def _host_arm(pair: Pair, model: HostModel, seeds: Seeds) -> ArmModel:
    encoder = Encoder(pair.preprocess, model.signature.input)
    outputs = pair.outputs or _detect_outputs(model, encoder, seeds)
    return ArmModel(model, encoder, ClassDecoder(model.signature.output, outputs))


def _detect_outputs(model: HostModel, encoder: Encoder, seeds: Seeds) -> Outputs:
    batch = model.submit(encoder.encode(seeds.images[:_SEEDS_FOR_DETECTION])).result()
    good = [i for i in range(len(batch.outputs)) if i not in batch.failures]
    return detect_outputs(model.signature.output, model.operators, batch.outputs[good])
