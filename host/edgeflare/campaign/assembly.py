"""Opening what a campaign needs: the seeds, the host's models and the device, as one panel."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from typing import Any, Final

from edgeflare import __version__
from edgeflare.campaign.about import About
from edgeflare.campaign.panel import ArmModel, Panel
from edgeflare.campaign.plan import Plan
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.decode import Decoder, Outputs, detect_outputs
from edgeflare.models.evaluation import Evaluator, HostModel
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.preprocess import Encoder
from edgeflare.models.seeds import Seeds, load_seeds
from edgeflare.models.signature import image_shape
from edgeflare.models.tflite import open_tflite
from edgeflare.search.goal import Find
from edgeflare.search.outcome import Arm

TWIN_KERNELS: Final = "xnnpack"
"""The host's kernels that run the twin: what a runtime does by itself."""

_LOOK = 32
"""Seeds whose outputs are looked at to tell logits from probabilities."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a campaign needs, opened."""

    pair: Pair
    seeds: Seeds
    panel: Panel
    device: Device

    def about(self, plan: Plan) -> About:
        """Return what the journal is told at its beginning."""
        labels = self.seeds.labels
        return About(
            version=__version__,
            pair=_describe(self.pair),
            plan=plan,
            devices=(
                {
                    "name": self.device.profile.name,
                    "provenance": self.device.provenance.to_json(),
                },
            ),
            arms=self.panel.decoders,
            twin_kernels=TWIN_KERNELS,
            classes=self.pair.classes,
            labels=None if labels is None else tuple(labels.tolist()),
        )


def assemble(
    pair: Pair, find: Find, limit: int | None, profile: Profile, stack: ExitStack
) -> Assembly:
    """Open a pair's models and seeds, and the device; `stack` closes them.

    Raises:
        UserError: a model, the seeds or the profile is not what it should be.
        InfrastructureError: the device or a worker process does not come up.

    """
    if pair.original is None and find is not Find.KERNEL:
        raise UserError(
            f"{pair.name} has no original model: name one with --original, or compare the kernels "
            "alone with --find kernel"
        )
    twin = stack.enter_context(closing(open_tflite(pair.compressed, TWIN_KERNELS)))
    shape = image_shape(twin.signature.input)
    seeds = load_seeds(pair.seeds, shape, pair.preprocess.resize, limit)
    arms: dict[Arm, ArmModel] = {}
    if pair.original is not None:
        original = stack.enter_context(closing(open_original(pair.original, twin.signature.input)))
        encoder = Encoder(pair.preprocess, original.signature.input)
        arms[Arm.ORIGINAL] = _host_arm(pair, original, encoder, seeds)
        _check_same_classes(pair, original, twin)
    encoder = Encoder(pair.preprocess, twin.signature.input)
    arms[Arm.TWIN] = _host_arm(pair, twin, encoder, seeds)
    device = stack.enter_context(connect(profile))
    session = device.open(pair.compressed)
    arms[Arm.DEVICE] = ArmModel(session, encoder, arms[Arm.TWIN].decoder)
    return Assembly(pair, seeds, Panel(arms), device)


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


def _describe(pair: Pair) -> dict[str, Any]:
    return {
        "name": pair.name,
        "fingerprint": pair.fingerprint(),
        "original": pair.original,
        "compressed": str(pair.compressed),
        "seeds": str(pair.seeds),
        "preprocess": asdict(pair.preprocess),
    }
