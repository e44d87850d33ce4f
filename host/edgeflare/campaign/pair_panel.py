"""Opening a pair for a campaign: the host's models, the seeds and the devices, as one panel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from edgeflare.campaign.panel import ArmModel, Panel
from edgeflare.campaign.pipeline import Pipeline, batch_size
from edgeflare.campaign.plan_defaults import default_ensemble
from edgeflare.campaign.screening_answers import GivenScreening
from edgeflare.campaign.white_box import WhiteBox
from edgeflare.core.goal import Find
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, EvaluatedQuery, Query
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import Decoder, ModelOutputs
from edgeflare.core.tensor import RawBatch
from edgeflare.core.truths import Truths, require_truths
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.session import DeviceSession
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.compressed_model import (
    CompressedModel,
    ModelRefused,
    OperatorMissing,
    compressed_makers,
    open_compressed,
    open_member,
)
from edgeflare.models.decoder_rows import as_read_by, submit
from edgeflare.models.detection_rows import batch_with_unused_rows_zeroed
from edgeflare.models.evaluator import Evaluator, HostModel
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.model_variables import pair_variables
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.run.plan import Plan
from edgeflare_protos.kernel_sets import Kernels, TFLiteKernels

_INPUTS_IN_BATCH = 64
"""Inputs in one message at most, where nothing but their answers is wanted."""

_PROVEN_ON = 16
"""Seeds that both files are run on. What is folded does not depend on the input, so a wrong
constant shows on any; several are run for kernels that keep something between two inputs."""


class RefusedByDevice(ModelRefused):
    """The device's runtime refuses a model that the host's takes."""


@dataclass(frozen=True, slots=True)
class DeviceStages:
    """What stands before and behind the model on the devices, where that is not the pair's own.

    Attributes:
        on_device: the first device, with its own encoder and decoder.
        as_pair: the first device, with those that the pair's other arms have.

    """

    on_device: ArmModel
    as_pair: ArmModel


@dataclass(frozen=True, slots=True)
class OpenedPair:
    """A pair whose models, seeds and devices are open, and the time that opening took.

    `stages` is what the devices have of their own before and behind the model; None where they have
    nothing. `white_box` answers what strategies ask about the inside of original and twin.
    `screening` is that of all seeds, where it was made elsewhere.
    """

    pair: Pair
    inputs: ModelInputs
    seeds: Seeds
    panel: Panel
    devices: tuple[Device, ...]
    ensemble: tuple[TFLiteKernels, ...]
    opening_seconds: float
    white_box: WhiteBox
    stages: DeviceStages | None = None
    screening: GivenScreening | None = None

    @property
    def truths(self) -> Truths:
        """What is right for each seed."""
        return Truths.of_seeds(self.panel.reading.decoders[Arm.TWIN], self.seeds)

    def pipeline(
        self,
        stopped: Callable[[], bool] = lambda: False,
        wait_until_ready: Callable[[], None] = lambda: None,
    ) -> Pipeline[Any]:
        """Return an empty pipeline outside a campaign; by default no device has to be cool."""
        return Pipeline(
            self.panel, lambda index: self.devices[index].reopen(stopped), wait_until_ready
        )

    def evaluate(
        self,
        inputs: Sequence[Input],
        seed_ids: Sequence[int],
        arms: tuple[Arm, ...],
        stopped: Callable[[], bool] = lambda: False,
        wait_until_ready: Callable[[], None] = lambda: None,
    ) -> Iterator[EvaluatedQuery]:
        """Evaluate inputs on some arms, batch after batch; none of it is recorded.

        Of slow models a batch has fewer inputs, so that it comes to an end soon after it should.

        Args:
            inputs: inputs of the pair's domain.
            seed_ids: the seed that each of them comes from, which decides the device.
            arms: the arms to ask.
            stopped: whether the user wants to stop; no other batch begins then.
            wait_until_ready: is called before each batch, such as one that waits for devices to
                cool down.

        Yields:
            What was answered, in the order of the inputs.

        """
        size = 1  # until it is known how long an input takes

        def batches() -> Iterator[tuple[None, list[Query], Sequence[int]]]:
            begin = 0
            while begin < len(inputs) and not stopped():
                part = slice(begin, begin + size)
                yield None, [Query(input_, arms) for input_ in inputs[part]], seed_ids[part]
                begin = part.stop

        for batch in self.pipeline(stopped, wait_until_ready).stream(batches()):
            size = batch_size(batch.mean_seconds, _INPUTS_IN_BATCH)
            yield from batch.evaluated


SeedSource: TypeAlias = Callable[[ModelInputs], Seeds]
"""Returns seeds, given the inputs that the compressed model takes."""


def open_pair(
    pair: Pair,
    plan: Plan,
    profiles: Sequence[Profile],
    stack: ExitStack,
    seeds_for: SeedSource | None = None,
    before: Mapping[Arm, Decoder] | None = None,
) -> OpenedPair:
    """Open a pair's models and its seeds, and the devices; `stack` closes them.

    Args:
        pair: what the user brings. Its shapes are folded here, where it says so.
        plan: says what is looked for, how many seeds are taken, and the members of the ensemble.
            Where it names no kernel set, the default is opened: see `default_ensemble`.
        profiles: the devices, at least one; they share the seeds out.
        stack: closes what is opened.
        seeds_for: returns the seeds; by default those of the pair's that the plan takes.
        before: how the outputs were read in the run that is evaluated again; None for none.

    Raises:
        RefusedByDevice: a device's runtime refuses the compressed model.
        UserError: a model, the seeds or a profile is not what it should be.

    """
    _require_original(pair, plan.goal.find)
    begun = time.monotonic()
    pair = stack.enter_context(with_shapes_folded(pair))
    earlier = before or {}
    interface = pair.interface
    ensemble = plan.ensemble or default_ensemble(pair, plan.goal.find)
    twin = stack.enter_context(closing(_open_twin(pair, profiles[0], ensemble[0])))
    _require_state(pair)
    inputs = ModelInputs(interface, twin.signature.inputs, str(pair.compressed))
    original = None
    if pair.original is not None:
        original = stack.enter_context(closing(open_original(pair, inputs)))
    if seeds_for is None:
        seeds = inputs.load(pair.seeds, plan.choice, pair.classes)
    else:
        seeds = seeds_for(inputs)
    hosts: dict[Arm, ArmModel] = {}
    if original is not None:
        theirs = ModelInputs(interface, original.signature.inputs, str(pair.original), like=inputs)
        hosts[Arm.ORIGINAL] = host_arm(
            pair, str(pair.original), original, theirs, seeds, earlier.get(Arm.ORIGINAL)
        )
    hosts[Arm.TWIN] = host_arm(
        pair, str(pair.compressed), twin, inputs, seeds, earlier.get(Arm.TWIN)
    )
    _require_comparable(pair, hosts)
    seeds = require_truths(hosts[Arm.TWIN].decoder, seeds, pair.seeds)
    as_pair = hosts[Arm.TWIN]
    on_device = _with_device_stages(pair, as_pair, inputs, twin, seeds, earlier.get(Arm.DEVICE))
    devices = tuple(stack.enter_context(connect(profile)) for profile in profiles)
    sessions = [_open_on_device(pair, device, twin) for device in devices]
    on_devices = [
        replace(on_device, evaluator=as_read_by(interface.on_device, session))
        for session in sessions
    ]
    same_runtime: dict[Kernels, Evaluator] = {
        kernels: stack.enter_context(closing(open_compressed(pair, kernels)))
        for kernels in ensemble[1:]
    }
    pair = with_folding_proven(pair, as_pair, {ensemble[0]: twin, **same_runtime}, seeds)
    others: dict[str, Evaluator] = {str(name): model for name, model in same_runtime.items()}
    others |= {member: stack.enter_context(open_member(pair, member)) for member in plan.elsewhere}
    members = {
        name: replace(as_pair, evaluator=as_read_by(interface, model))
        for name, model in others.items()
    }
    panel = Panel(hosts, on_devices, members)
    stages = None
    if interface.device is not None:
        as_pair = replace(as_pair, evaluator=as_read_by(interface, sessions[0]))
        stages = DeviceStages(on_devices[0], as_pair)
    seconds = time.monotonic() - begun
    white_box = WhiteBox(pair, panel, seeds, ensemble[0])
    return OpenedPair(pair, inputs, seeds, panel, devices, ensemble, seconds, white_box, stages)


def _with_device_stages(
    pair: Pair,
    twin: ArmModel,
    taken: ModelInputs,
    model: CompressedModel,
    seeds: Seeds,
    before: Decoder | None,
) -> ArmModel:
    """Return the twin with what stands around the model on the device: encoder and decoder."""
    interface = pair.interface.device
    if interface is None:
        return twin
    name = str(pair.compressed)
    inputs = ModelInputs(interface, model.signature.inputs, name)
    if inputs.shape != taken.shape:
        raise UserError(
            f"{pair.name}: as [device] says, an input is {inputs.shape}, and {taken.shape} as the"
            " rest of pair.toml does: both have to take the same inputs"
        )
    on_device = host_arm(replace(pair, interface=interface), name, model, inputs, seeds, before)
    _require_fitting_device(pair, twin.decoder, on_device.decoder)
    return on_device


def _open_twin(pair: Pair, profile: Profile, kernels: Kernels) -> CompressedModel:
    try:
        return open_compressed(pair, kernels)
    except OperatorMissing as missing:
        there = f"{profile.name} {_runtime(profile)}"
        raise OperatorMissing(
            f"{missing}; this is the host, which runs it too, and {there}"
        ) from None


def _runtime(profile: Profile) -> str:
    """Return which runtime a device has, as the end of a sentence about another mistake."""
    try:
        with connect(profile) as device:
            there = device.provenance
    except InfrastructureError:
        return "cannot be asked what it has"
    return f"has {there.runtime} {there.runtime_version}"


def _open_on_device(pair: Pair, device: Device, twin: CompressedModel) -> DeviceSession:
    try:
        return device.open(pair.executed, pair.interface.invocation)
    except UserError as refused:
        raise RefusedByDevice(f"{refused} (the host's {twin.runtime} takes it)") from None


def host_arm(
    pair: Pair,
    name: str,
    model: HostModel,
    inputs: ModelInputs,
    seeds: Seeds,
    before: Decoder | None = None,
) -> ArmModel:
    """Return a model of the host as an arm of its pair.

    Args:
        pair: pair of the model.
        name: what the user calls the model, for messages.
        model: runs it.
        inputs: what it takes.
        seeds: what the task may look at to know how its outputs are to be read.
        before: how they were read in the run that is evaluated again; kept where the model has the
            same outputs.

    Raises:
        UserError: the pair's task does not fit the model's outputs.

    """
    task = pair.interface.opened_task
    evaluator = as_read_by(pair.interface, model)

    def read_by(decoder: Decoder) -> ArmModel:
        return ArmModel.of(evaluator, inputs, decoder, seeds)

    def sample(count: int) -> RawBatch:
        few = replace(seeds, inputs=seeds.inputs[:count], ids=tuple(seeds.seed_ids[:count]))
        return submit(evaluator, inputs.given(few)).result()

    described = ModelOutputs(
        name=name,
        outputs=evaluator.signature.outputs,
        state=frozenset(model.invocation.state.values()),
        frames=model.invocation.frames,
        operators=model.operators,
        sample=sample,
        inputs=len(model.signature.inputs) if task.reads_inputs else 0,
        before=before,
        picture_sizes=inputs.picture_sizes,
        makers=model.makers if evaluator is model else tuple,
        compressed_makers=tuple if model.operators else partial(compressed_makers, pair),
    )
    if before is not None and before.outputs == described.outputs:
        return read_by(before)
    return read_by(task.decoder(described))


def _require_original(pair: Pair, find: Find) -> None:
    """Refuse a pair without an original, unless kernels alone are compared."""
    if pair.original is None and find is not Find.KERNEL:
        raise UserError(
            f"{pair.name} has no original model: name one with --original, or compare the kernels "
            "alone with --find kernel"
        )


def _require_state(pair: Pair) -> None:
    """Refuse frames of models that keep nothing from one to the next, if the last alone counts."""
    called, rule = pair.interface.invocation, pair.interface.task_settings.get("frames", "last")
    if called.frames and rule == "last" and not called.state and not pair_variables(pair):
        raise UserError(
            f"{pair.name}: an input has {called.frames} frames, but the models keep nothing from"
            " one to the next, and the last alone would count: say how they are pooled under"
            ' [task], such as frames = "mean", or under [state] which output feeds which input, or'
            " remove frames and windows"
        )


def _require_comparable(pair: Pair, hosts: Mapping[Arm, ArmModel]) -> None:
    """Refuse models whose decisions cannot be compared, or class names that do not fit them."""
    original = hosts.get(Arm.ORIGINAL)
    try:
        pair.interface.opened_task.require_pair(
            None if original is None else original.decoder, hosts[Arm.TWIN].decoder, pair.classes
        )
    except UserError as error:
        raise UserError(f"{pair.name}: {error}") from None


def _require_fitting_device(pair: Pair, twin: Decoder, device: Decoder) -> None:
    """Refuse stages of the device whose answers cannot be compared with those of the other arms."""
    if twin.choices != device.choices:
        raise UserError(
            f"{pair.name}: as [device.task] reads the outputs there are {device.choices} classes,"
            f" and {twin.choices} as [task] does: both have to tell the same ones apart"
        )
    try:
        pair.interface.opened_task.require_pair(twin, device, ())
    except UserError as error:
        raise UserError(
            f"{pair.name}: as [device.task] reads the outputs they cannot be compared with what"
            f" [task] makes of them, which stands for the original here: {error}"
        ) from None


def with_folding_proven(
    pair: Pair, twin: ArmModel, opened: Mapping[Kernels, Evaluator], seeds: Seeds
) -> Pair:
    """Run the user's own file beside the folded one, and return the pair with what was proven.

    Args:
        pair: as `with_shapes_folded` gives it; one without folded shapes is returned as it is.
        twin: says how inputs become rows.
        opened: the models of the folded file, by the host's kernels that run them.
        seeds: the first of them are run.

    Raises:
        UserError: outputs differ in a bit, or one of both gives no answer where the other does.

    """
    if pair.folded is None:
        return pair
    count = min(_PROVEN_ON, len(seeds))
    rows = twin.rows(seeds.inputs[:count], seeds.seed_ids[:count])
    unfolded = replace(pair, fold_shapes=False, folded=None)
    for kernels, model in opened.items():
        with closing(open_compressed(unfolded, kernels)) as own:
            raw = [
                batch_with_unused_rows_zeroed(
                    evaluator.signature.outputs, own.makers(), evaluator.submit(rows).result()
                )
                for evaluator in (own, model)
            ]
            if not _equal_rows(*raw):
                raise UserError(
                    f"{pair.compressed}: with its shapes folded it gives other outputs under the"
                    f" {kernels} kernels of the host, so it is another model: leave --fold-shapes"
                    " out, and report this model to EdgeFlare"
                )
    return replace(pair, folded=replace(pair.folded, equal_under=tuple(opened), inputs=count))


def _equal_rows(own: RawBatch, folded: RawBatch) -> bool:
    same_failures = own.failures.keys() == folded.failures.keys()
    return same_failures and own.outputs.tobytes() == folded.outputs.tobytes()
