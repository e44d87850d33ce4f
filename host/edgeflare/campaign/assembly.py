"""Opening what a campaign needs: the seeds, the host's models and the device, as one panel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from edgeflare import __version__
from edgeflare.campaign.panel import ArmModel, Panel
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.session import DeviceSession
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.decode import Decoder, Outputs, detect_outputs
from edgeflare.models.evaluator import Evaluator, HostModel
from edgeflare.models.host_description import describe_host
from edgeflare.models.original import is_callable, open_original
from edgeflare.models.other_runtime import open_in_other_runtime
from edgeflare.models.pair import Pair
from edgeflare.models.preprocess import Encoder
from edgeflare.models.seeds import Seeds, load_seeds
from edgeflare.models.signature import class_count, image_shape
from edgeflare.models.tflite import (
    Kernels,
    OperatorMissing,
    TFLiteModel,
    check_model_file,
    open_tflite,
)
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import RunHeader

TWIN_KERNELS: Final = "xnnpack"
"""The host's kernels that run the twin: what a runtime does by itself."""

CHEAP_MODEL_BYTES = 4 * 2**20
"""The largest compressed model whose ensemble holds the reference kernels unless told otherwise.
They take 16 to 40 times XNNPACK's time; above, the optimized built-in kernels stand in, which take
about 4 times (ResNet-20: 9.6, 1.0 and 0.24 ms)."""

ImageShape = tuple[int, int, int]
"""Height, width, channels."""

_LOOK = 32
"""Seeds whose outputs are looked at to tell logits from probabilities."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a campaign needs, opened, and the time that this took."""

    pair: Pair
    seeds: Seeds
    panel: Panel
    devices: tuple[Device, ...]
    ensemble: tuple[Kernels, ...]
    opening_seconds: float

    def settle(self, plan: Plan) -> Plan:
        """Return the plan with what depends on the pair filled in: the ensemble and the bounds.

        Raises:
            UserError: there are fewer queries than seeds.

        """
        seeds = len(self.seeds)
        if plan.total_queries is not None and plan.total_queries < seeds:
            raise UserError(
                f"--total-queries {plan.total_queries} is less than one for each of {seeds} seeds: "
                f"raise it, or take fewer seeds with --limit"
            )
        size = int(np.prod(self.seeds.images.shape[1:]))
        return plan.settled(self.ensemble, size)

    def about(self, plan: Plan) -> RunHeader:
        """Return what the journal is told at its beginning."""
        labels = self.seeds.labels
        return RunHeader(
            version=__version__,
            pair=_describe(self.pair),
            plan=self.settle(plan),
            devices=tuple(
                {"name": device.profile.name, "provenance": device.provenance.to_json()}
                for device in self.devices
            ),
            arms=self.panel.reading.decoders,
            classes=self.pair.classes,
            labels=None if labels is None else tuple(labels.tolist()),
            host=describe_host(self.pair.original),
            names=self.seeds.names if self.pair.seeds.is_dir() else (),
        )


def assemble(
    pair: Pair,
    seeds_for: Callable[[ImageShape], Seeds],
    find: Find,
    profiles: Sequence[Profile],
    stack: ExitStack,
    ensemble: tuple[Kernels, ...] = (),
    elsewhere: tuple[str, ...] = (),
) -> Assembly:
    """Open a pair's models and its seeds, and the devices; `stack` closes them.

    Args:
        pair: what the user brings.
        seeds_for: returns the seeds, given the shape of the images that the models take.
        find: what is looked for, which decides what has to be there.
        profiles: the devices, at least one; they share the seeds out.
        stack: closes what is opened.
        ensemble: kernel sets of the host, the twin's own first; empty for the default: an ensemble
            of two where kernels are looked for, the twin alone elsewhere.
        elsewhere: further members, which another runtime runs; see `Plan`.

    Raises:
        UserError: a model, the seeds or a profile is not what it should be.
        InfrastructureError: a device or a worker process does not come up.

    """
    if pair.original is None and find is not Find.KERNEL:
        raise UserError(
            f"{pair.name} has no original model: name one with --original, or compare the kernels "
            "alone with --find kernel"
        )
    begun = time.monotonic()
    ensemble = ensemble or _default_ensemble(pair, find)
    twin = stack.enter_context(closing(_open_twin(pair, profiles[0], ensemble[0])))
    _check_class_names(pair, twin)
    seeds = seeds_for(image_shape(twin.signature.input))
    hosts: dict[Arm, ArmModel] = {}
    if pair.original is not None:
        original = stack.enter_context(closing(open_original(pair.original, twin.signature.input)))
        encoder = Encoder(pair.preprocess, original.signature.input)
        hosts[Arm.ORIGINAL] = _host_arm(pair, original, encoder, seeds)
        _check_same_classes(pair, original, twin)
    encoder = Encoder(pair.preprocess, twin.signature.input)
    hosts[Arm.TWIN] = _host_arm(pair, twin, encoder, seeds)
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
    for member in elsewhere:
        model = stack.enter_context(open_in_other_runtime(pair.compressed, member))
        members[member] = replace(hosts[Arm.TWIN], evaluator=model)
    panel = Panel(hosts, on_devices, members)
    return Assembly(pair, seeds, panel, devices, ensemble, time.monotonic() - begun)


def first_seeds(pair: Pair, limit: int | None) -> Callable[[ImageShape], Seeds]:
    """Return what loads the first so many of a pair's own seeds; all of them for None."""
    return lambda shape: load_seeds(pair.seeds, shape, pair.preprocess.resize, limit)


def _default_ensemble(pair: Pair, find: Find) -> tuple[Kernels, ...]:
    if find is not Find.KERNEL:
        return (TWIN_KERNELS,)
    check_model_file(pair.compressed)
    cheap = pair.compressed.stat().st_size <= CHEAP_MODEL_BYTES
    return (TWIN_KERNELS, "reference" if cheap else "builtin")


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


def _host_arm(pair: Pair, model: HostModel, encoder: Encoder, seeds: Seeds) -> ArmModel:
    outputs = _outputs(pair, model, encoder, seeds)
    return ArmModel(model, encoder, Decoder(model.signature.output, outputs))


def _outputs(pair: Pair, model: HostModel, encoder: Encoder, seeds: Seeds) -> Outputs:
    if pair.outputs is not None:
        return pair.outputs
    batch = model.submit(encoder.encode(seeds.images[:_LOOK])).result()
    good = [i for i in range(len(batch.outputs)) if i not in batch.failures]
    return detect_outputs(model.signature.output, model.operators, batch.outputs[good])


def _check_same_classes(pair: Pair, original: Evaluator, twin: Evaluator) -> None:
    f, h = original.signature.output.shape, twin.signature.output.shape
    if f[-1] != h[-1]:
        raise UserError(
            f"{pair.name}: the original tells {f[-1]} classes apart and the compressed model "
            f"{h[-1]}: they are no pair"
        )


def _check_class_names(pair: Pair, twin: Evaluator) -> None:
    classes = class_count(twin.signature.output)
    if pair.classes and len(pair.classes) != classes:
        raise UserError(
            f"{pair.name}: classes has {len(pair.classes)} names, but {pair.compressed} tells "
            f"{classes} classes apart: give one name for each, in the order of its outputs"
        )


def _describe(pair: Pair) -> dict[str, Any]:
    return {
        "name": pair.name,
        "fingerprint": pair.fingerprint(),
        "original": None if pair.original is None else _absolute(pair.original),
        "compressed": os.path.abspath(pair.compressed),
        "seeds": os.path.abspath(pair.seeds),
        "outputs": pair.outputs,
        "sha256": pair.model_hashes(),
        "preprocess": asdict(pair.preprocess),
    }


def _absolute(original: str) -> str:
    """Return where an original is, from whatever folder; a module's name stays what it is."""
    module = original.rpartition(":")[0]
    named = is_callable(original) and not module.endswith(".py")
    return original if named else os.path.abspath(original)
