"""Explain findings: collect the votes, localize the layers, and derive the verdict on each."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.joint_answer import JointAnswer
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.core.seeds import SeedChoice, Seeds
from edgeflare.core.tensor import GivenRows
from edgeflare.devices.device import Device
from edgeflare.devices.provenance import DEVICE_DECIDES, decisive_changes
from edgeflare.diagnose.arm_probe import State
from edgeflare.diagnose.compression_error import CompressionError
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.evidence import LAYERS_QUERIES, MOST_DEVICE_QUERIES, Evidence
from edgeflare.diagnose.execution_modes import (
    OTHER_REPEATS,
    ExecutionMode,
    Vote,
    ask,
    ask_device,
    ask_host,
)
from edgeflare.diagnose.explanation import Explanation
from edgeflare.diagnose.kernel_localization import KernelLocalizer, ObservedKernels
from edgeflare.diagnose.layer_difference import KernelOnset
from edgeflare.diagnose.layer_graphs import (
    layered_compressed,
    layered_original,
    reason_not_seen,
    tflite_original,
)
from edgeflare.diagnose.output_stage import ModelReader, OutputStage
from edgeflare.diagnose.seed_disagreement import (
    MOST_SEEDS,
    Disagreement,
    Labels,
    Probabilities,
    disagreement,
    disagreement_of_values,
    explained,
    readings,
)
from edgeflare.diagnose.stage_votes import StageVotes, ask_with_stages, rows_with_one_key
from edgeflare.diagnose.verdict import judge
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import UserError
from edgeflare.models.decoder_rows import as_read_by
from edgeflare.models.evaluator import Evaluator, HostModel
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.model_probe import HostProbe, Values
from edgeflare.models.non_finite_values import said_of_arms
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare.run.answer_rows import from_rows
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding
from edgeflare.run.run_header import RunHeader
from edgeflare.run.systematic.differences import orders_between
from edgeflare_protos.kernel_sets import Kernels

_LEAST_SEEDS = 8
"""Fewer seeds do not show how the arms disagree in general."""

_SEEDS_OF_LAYERS = 16
"""Seeds from which the ranges of layers are taken, of each label its share."""

_TOGETHER = 32
"""Findings whose votes are collected together: opening a model in all execution modes takes about
as long as that many answers, and progress is still shown often enough."""


@dataclass(frozen=True, slots=True)
class RunToExplain:
    """The run whose findings are to be explained.

    Attributes:
        directory: the run directory.
        header: the run's header.
        pair: the run's models, whose files are unchanged.
        seed_rows: the answers of the arms on the seeds, by seed id; none of a survey or a replay,
            whose seeds were chosen by whether the arms disagree on them.
        seeds: the path of the seeds that it searched; None where they are gone or changed.
        repairable: whether `edgeflare repair` takes it.

    """

    directory: RunDirectory
    header: RunHeader
    pair: Pair
    seed_rows: Mapping[int, Sequence[AnswerRow]]
    seeds: Path | None = None
    repairable: bool = False

    @property
    def twin_kernels(self) -> Kernels:
        """The kernels that ran the twin."""
        return self.header.plan.ensemble[0]


def explain(
    run: RunToExplain, findings: Sequence[Finding], device: Device
) -> Iterator[Explanation]:
    """Explain findings on one device, one after the other.

    Args:
        run: the run that found them.
        findings: entries of its document, at least one.
        device: the device to ask; the run's own, or another.

    Raises:
        UserError: the host or the device refuses a model, or an image does not fit.

    """
    with ExitStack() as stack:
        run = replace(run, pair=stack.enter_context(with_shapes_folded(run.pair)))
        explainer = _Explainer(run, device, stack)
        for start in range(0, len(findings), _TOGETHER):
            some = findings[start : start + _TOGETHER]
            images = np.stack([run.directory.load_input(entry.file) for entry in some])
            table = explainer.evidence(images, some)
            for at, (finding, evidence) in enumerate(zip(some, table, strict=True)):
                yield explainer.explanation(finding, images[at : at + 1], evidence)


class _Explainer:
    """Explains findings with the models of their run, which it opens once."""

    def __init__(self, run: RunToExplain, device: Device, stack: ExitStack) -> None:
        self._run = run
        self._device = device
        pair = run.pair
        self._invocation = pair.interface.invocation
        self._twin: TFLiteModel = stack.enter_context(
            closing(open_tflite(pair.executed, run.twin_kernels, self._invocation))
        )
        self._twin_makers = self._twin.makers()
        self._twin_inputs = ModelInputs(
            pair.interface, self._twin.signature.inputs, str(pair.compressed)
        )
        self._original: HostModel | None = None
        if pair.original is not None:
            self._original = stack.enter_context(closing(open_original(pair, self._twin_inputs)))
            self._original_makers = self._original.makers()
            self._original_inputs = ModelInputs(
                pair.interface,
                self._original.signature.inputs,
                pair.original,
                like=self._twin_inputs,
            )
        self._same_device = is_the_runs_own(run.header, device)
        self._kernel_localizer = self._open_kernel_localizer(stack)
        self._compression_localizer = self._open_compression_localizer(stack)
        self._seeds = self._on_seeds()
        if "original-twin" in self._seeds and self._seeds["original-twin"].order:
            # The last layers would be blamed for standing where others do.
            self._compression_localizer = "layers are not compared where the order is another"

    # Votes.

    def evidence(self, images: NDArray[Any], findings: Sequence[Finding]) -> list[Evidence]:
        """Return the evidence on each finding, without that of the layers."""
        path, stage = self._run.pair.executed, self._output_stage(Arm.TWIN)
        rows = self._rows(self._twin_inputs, images, findings)
        with ThreadPoolExecutor(1, thread_name_prefix="edgeflare-device") as pool:
            asked = pool.submit(ask_device, self._device, path, stage, rows, self._invocation)
            as_in_the_run = ExecutionMode(Arm.TWIN, self._run.twin_kernels, 1)
            host = ask_host(path, stage, rows, self._invocation, {as_in_the_run: self._twin})
            originals = self._ask_original(images, findings)
            own, others = asked.result()
            asked_of = sum(len(answers[0].labels) for answers in (own, *others.values()))
            left = MOST_DEVICE_QUERIES - LAYERS_QUERIES - asked_of
            stages = self._ask_with_stages(images, findings, rows, left)
        twin = host[as_in_the_run]
        provenance = self._device.provenance
        return [
            Evidence(
                original=originals[at],
                twin=twin[at],
                host=tuple(votes[at] for votes in host.values()),
                device=own[at],
                others=tuple(votes[at] for votes in others.values()),
                recorded=_recorded(findings[at], own[at]) if self._same_device else (),
                same_runtime=self._twin.runtime
                == f"{provenance.runtime} {provenance.runtime_version}",
                same_machine=_architecture(platform.machine()) == _architecture(provenance.machine),
                seeds=self._seeds,
                classes=self._run.header.classes,
                decoder=stage.decoder,
                stages=stages[at],
            )
            for at in range(len(findings))
        ]

    def _output_stage(self, arm: Arm) -> OutputStage:
        interface = self._run.pair.interface
        its = interface.on_device if arm is Arm.DEVICE else interface
        makers = self._original_makers if arm is Arm.ORIGINAL else self._twin_makers
        return OutputStage(its, self._run.header.arms[arm], makers)

    def _ask_with_stages(
        self, images: NDArray[Any], findings: Sequence[Finding], rows: GivenRows, most: int
    ) -> Sequence[StageVotes | None]:
        """Ask the device with its own stages, where the pair says that it has some.

        Single keys are tried as far as all that goes with `most` device queries for a finding.
        """
        pair = self._run.pair
        if pair.interface.device is None:
            return [None] * len(images)

        def given(interface: PairInterface) -> GivenRows:
            inputs = ModelInputs(interface, self._twin.signature.inputs, str(pair.compressed))
            return self._rows(inputs, images, findings)

        return ask_with_stages(
            self._device,
            pair.executed,
            self._invocation,
            (given(pair.interface.device), self._output_stage(Arm.DEVICE)),
            (rows, self._output_stage(Arm.TWIN)),
            rows_with_one_key(pair.interface, given),
            most,
        )

    def _rows(
        self, inputs: ModelInputs, images: NDArray[Any], findings: Sequence[Finding]
    ) -> GivenRows:
        """Return what a model is given for the inputs of findings."""
        ids = tuple(finding.seed_id for finding in findings)
        fixed = self._run.directory.load_fixed(ids, inputs.fixed_names)
        return inputs.given(Seeds(images, None, (), fixed, ids))

    def _ask_original(
        self, images: NDArray[Any], findings: Sequence[Finding]
    ) -> Sequence[Vote | None]:
        if self._original is None:
            return [None] * len(images)
        stage = self._output_stage(Arm.ORIGINAL)
        rows = self._rows(self._original_inputs, images, findings)
        return ask(ExecutionMode(Arm.ORIGINAL), self._original, stage, rows, OTHER_REPEATS)

    # Seeds.

    def _on_seeds(self) -> dict[str, Disagreement]:
        """Return how the arms disagree on the seeds, from the answers in the run's journal."""
        rows = [rows[0] for _, rows in sorted(self._run.seed_rows.items())]
        evaluated = from_rows(self._run.header.reading, rows)
        outcomes = [query.outcome for query in evaluated]
        if len(outcomes) < _LEAST_SEEDS:
            return {}
        arms = [arm for arm in Arm if all(arm in outcome.answers for outcome in outcomes)]
        answers = {arm: [outcome[arm] for outcome in outcomes] for arm in arms}
        # Stages of the device's own make it differ, whatever the models do.
        comparable = self._same_device and self._run.pair.interface.device is None
        pairs = [(Arm.ORIGINAL, Arm.TWIN, True), (Arm.TWIN, Arm.DEVICE, comparable)]
        return {
            f"{first}-{second}": replace(
                self._between(second, answers[first], answers[second]),
                order=self._order((first, second), evaluated),
            )
            for first, second, known in pairs
            if known and first in answers and second in answers
        }

    def _order(self, arms: tuple[Arm, Arm], evaluated: Sequence[EvaluatedQuery]) -> str | None:
        header = self._run.header
        orders = orders_between(header.reading, arms, evaluated, header.classes)
        return "; ".join(map(str, orders)) or None

    def _between(
        self, second: Arm, theirs: Sequence[Answer], its: Sequence[Answer]
    ) -> Disagreement:
        """Return how two arms disagree on the seeds, by the answers of the first and the second."""
        if not its[0].counted:
            return disagreement_of_values(theirs, its)
        labels: tuple[Labels, Labels] = (
            [answer.decision for answer in theirs],
            [answer.decision for answer in its],
        )
        spread = (
            np.stack([answer.probabilities for answer in theirs]),
            np.stack([answer.probabilities for answer in its]),
        )
        # Other preprocessing is tried on the twin, also in place of the device.
        wanted = spread[0] if second is Arm.TWIN else spread[1]
        return self._explained(disagreement(*labels, spread), wanted)

    def _explained(self, found: Disagreement, wanted: Probabilities) -> Disagreement:
        """Try other preprocessing on the twin, with which it agrees with the other arm."""
        domain, header, source = self._run.pair.interface.domain, self._run.header, self._run.seeds
        ids = sorted(self._run.seed_rows)[:MOST_SEEDS]
        if source is None or not isinstance(domain, ImageDomain):
            return found
        if len(self._twin.signature.inputs) > 1:
            return found
        try:
            choice = header.plan.choice
            alone = SeedChoice(first=ids[-1] + 1)
            seeds = self._twin_inputs.load(source, alone if choice.takes_all else choice)
            places = [header.place(seed_id) for seed_id in ids]
        except UserError:
            return found
        if len(seeds) <= places[-1]:
            return found

        decoder = header.arms[Arm.TWIN]
        twin = as_read_by(self._run.pair.interface, self._twin)

        def answer(inputs: NDArray[np.generic]) -> Probabilities:
            answers = decoder.read(twin.submit(inputs).result())
            return np.stack([scored.probabilities for scored in answers])

        others = readings(self._twin, domain.preprocess, answer)
        return explained(found, seeds.inputs[places], wanted[: len(ids)], others)

    # Layers.

    def explanation(self, finding: Finding, image: NDArray[Any], evidence: Evidence) -> Explanation:
        """Localize the layers, and derive the verdict."""
        asked = sum(len(vote.labels) for vote in (evidence.device, *evidence.others))
        asked += 0 if evidence.stages is None else evidence.stages.device_queries
        given = None
        if isinstance(self._kernel_localizer, KernelLocalizer):
            given = _one(self._twin, self._twin_inputs, image)
        kernels, compression_error = self._layers(image, given, MOST_DEVICE_QUERIES - asked)
        if (on_seeds := self._seeds.get("original-twin")) is not None:
            compression_error = replace(compression_error, apart_on_seeds=on_seeds.rate)
        grade = compression_error.grade
        evidence = replace(
            evidence,
            compression_in_layer=(grade != "spread") if grade is not None else None,
            compression_as=grade,
            kernel_in_layer=kernels.onset.in_layer,
        )
        verdict = judge(evidence)
        original = {Arm.ORIGINAL: compression_error.original} if compression_error.seen else {}
        non_finite = {**original, **kernels.non_finite}
        said = [verdict.why, said_of_arms(non_finite)]
        if verdict.name == "compression":
            said.append(compression_error.other_options)
        return Explanation(
            finding,
            self._device.profile.name,
            replace(verdict, why="; ".join(filter(None, said))),
            evidence,
            kernels.onset,
            compression_error,
            non_finite,
            asked + kernels.onset.device_runs,
            self._run.repairable,
            given=given,
        )

    def _layers(
        self, image: NDArray[Any], given: Values | None, most_runs: int
    ) -> tuple[ObservedKernels, CompressionError]:
        if given is None or isinstance(self._kernel_localizer, str):
            why = str(self._kernel_localizer)
            nothing = ObservedKernels(KernelOnset("none", note=why), {}, {})
            return nothing, CompressionError(note=why)
        kernels = self._kernel_localizer.find(given, most_runs)
        if isinstance(self._compression_localizer, str) or self._original is None:
            return kernels, CompressionError(note=str(self._compression_localizer))
        if not kernels.twin:
            return kernels, CompressionError(note="the twin's layers cannot be seen")
        return kernels, self._compression_localizer.find(
            kernels.twin, _one(self._original, self._original_inputs, image)
        )

    def _open_kernel_localizer(self, stack: ExitStack) -> KernelLocalizer | str:
        """Return the localizer of kernels' differences, or the reason why there is none."""
        if why := reason_not_seen(self._invocation, len(self._twin.signature.inputs)):
            return f"layers are not seen: {why}"
        try:
            model = layered_compressed(self._run.pair)
        except UserError as error:
            return str(error)
        self._graph = model.graph
        localizer = KernelLocalizer(
            model.graph,
            model.content,
            lambda part, capture: self._device.probe(part, capture=capture),
            self._open_on_host,
            self._device.payload_limit_bytes,
        )
        stack.enter_context(closing(localizer))
        return localizer

    def _open_compression_localizer(self, stack: ExitStack) -> CompressionLocalizer | str:
        """Return the localizer of compression errors, or the reason why there is none."""
        pair = self._run.pair
        try:
            tflite_original(pair)
            if isinstance(self._kernel_localizer, str) or self._original is None:
                return str(self._kernel_localizer)
            twin, model = self._kernel_localizer, layered_original(pair)
            localizer = CompressionLocalizer(
                self._graph,
                model.graph,
                model.content,
                self._open_on_host,
                ModelReader(self._output_stage(Arm.ORIGINAL), self._original.signature),
                lambda: self._layers_on_seeds(twin),
            )
        except UserError as error:
            return str(error)
        stack.enter_context(closing(localizer))
        return localizer

    def _layers_on_seeds(self, twin: KernelLocalizer) -> list[tuple[State, Values]]:
        """Return the twin's tensors and the original's input on some of the pair's seeds."""
        original = self._original
        if self._run.seeds is None or original is None:
            return []
        try:
            seeds = self._twin_inputs.load(self._run.seeds, SeedChoice(limit=_SEEDS_OF_LAYERS))
        except UserError:
            return []
        seen = (
            (
                twin.observe_twin(_one(self._twin, self._twin_inputs, input_[None])),
                _one(original, self._original_inputs, input_[None]),
            )
            for input_ in seeds.inputs
        )
        return [(state, given) for state, given in seen if state]

    def _open_on_host(self, model: bytes, capture: bool) -> HostProbe:
        return HostProbe(model, self._run.twin_kernels, capture=capture)


def _one(model: Evaluator, inputs: ModelInputs, image: NDArray[Any]) -> Values:
    return inputs.encoder().encode(image).reshape(model.signature.input.shape)


def _recorded(finding: Finding, now: Vote) -> tuple[int | None, ...]:
    """Return the device's labels in the run; none where they are not those of `Vote`.

    Joint decisions that are too many to have scores are numbered anew in each finding.
    """
    if isinstance(now.answer, JointAnswer) and not len(now.answer.scores):
        return ()
    return tuple(seen.get(Arm.DEVICE.value) for seen in finding.seen)


def is_the_runs_own(header: RunHeader, device: Device) -> bool:
    """Whether this is a device of the run, and still answers as it did."""
    now = device.provenance
    return any(
        known.name == device.profile.name
        # What is not known is no difference, as when a run is gone on with.
        and not any(decisive_changes(known.provenance, now, DEVICE_DECIDES))
        for known in header.devices
    )


def _architecture(machine: str) -> str:
    return {"arm64": "aarch64", "AMD64": "x86_64"}.get(machine, machine)
