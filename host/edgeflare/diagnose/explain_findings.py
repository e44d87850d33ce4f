"""Explaining findings: the votes, the layers, and the verdict on each."""

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

from edgeflare.core.arm import Arm
from edgeflare.devices.device import Device
from edgeflare.diagnose.compression_error import CompressionError
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.evidence import (
    MOST_DEVICE_QUERIES,
    Disagreement,
    Evidence,
    ExecutionMode,
    Vote,
)
from edgeflare.diagnose.kernel_localization import KernelLocalizer, KernelOnset
from edgeflare.diagnose.seed_disagreement import (
    MOST_SEEDS,
    Labels,
    Probabilities,
    disagreement,
    explained,
    readings,
)
from edgeflare.diagnose.verdict import Verdict, judge
from edgeflare.diagnose.voting import OTHER_REPEATS, ask, ask_device, ask_host
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Evaluator, HostModel
from edgeflare.models.model_probe import HostProbe, Values
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair
from edgeflare.models.preprocess import Encoder
from edgeflare.models.seeds import load_seeds
from edgeflare.models.signature import image_shape
from edgeflare.models.tflite import Kernels, TFLiteModel, open_tflite
from edgeflare.models.tflite_graph import Graph
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import DECIDES_ANSWERS, RunHeader
from edgeflare.run.stored_answers import from_rows

_LEAST_SEEDS = 8
"""Fewer tell nothing of how arms disagree in general."""

_TOGETHER = 32
"""Findings whose votes are asked for together: opening a model in all its ways takes about as long
as that many answers, and whoever waits sees something happen."""

_DECIDES_ANSWERS = [key for key in DECIDES_ANSWERS if key != "delegated_nodes"]
"""What of a device's provenance decides its answers, as far as it is known with no model open."""

Finding = Mapping[str, Any]
"""An entry of a run's document."""


@dataclass(frozen=True, slots=True)
class FindingToExplain:
    """The run whose findings are to be explained.

    Attributes:
        directory: where it lies.
        about: what it was.
        pair: its models, which are those that it had.
        seed_rows: what the arms answered on the seeds, by seed id.
        seeds: the seeds that it searched, where they are still what they were; else None.

    """

    directory: RunDirectory
    about: RunHeader
    pair: Pair
    seed_rows: Mapping[int, Sequence[AnswerRow]]
    seeds: Path | None = None

    @property
    def twin_kernels(self) -> Kernels:
        """The kernels that ran the twin."""
        return self.about.plan.ensemble[0]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a finding deviates, and where it begins.

    Attributes:
        finding: what is explained.
        device: name of the device that was asked.
        verdict: what is to blame.
        evidence: what the verdict rests on.
        parting: where device and twin part.
        loss: what compression did to the layers.
        device_queries: inputs that the device was sent.

    """

    finding: Finding
    device: str
    verdict: Verdict
    evidence: Evidence
    parting: KernelOnset
    loss: CompressionError
    device_queries: int

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "seed_id": self.finding["seed_id"],
            "image": self.finding["image"],
            "sha256": self.finding["sha256"],
            "cause": self.finding["cause"],
            "device": self.device,
            "verdict": self.verdict.to_json(),
            "evidence": self.evidence.to_json(),
            "device_and_twin": self.parting.to_json(),
            "twin_and_original": self.loss.to_json(),
            "device_queries": self.device_queries,
        }


def explain(
    subject: FindingToExplain, findings: Sequence[Finding], device: Device
) -> Iterator[Explanation]:
    """Explain findings on one device, one after the other.

    Args:
        subject: the run that they are of.
        findings: entries of its document, at least one.
        device: where to look; the run's own, or another.

    Raises:
        UserError: the host or the device refuses a model, or an image does not fit.
        InfrastructureError: the device or a worker process is lost.

    """
    with ExitStack() as stack:
        bench = _Bench(subject, device, stack)
        for start in range(0, len(findings), _TOGETHER):
            some = findings[start : start + _TOGETHER]
            images = np.stack([subject.directory.load_image(entry["image"]) for entry in some])
            tables = bench.evidence(images, some)
            for at, (finding, table) in enumerate(zip(some, tables, strict=True)):
                yield bench.explanation(finding, images[at : at + 1], table)


class _Bench:
    """The models of a run, opened, and the device."""

    def __init__(self, subject: FindingToExplain, device: Device, stack: ExitStack) -> None:
        self._subject = subject
        self._device = device
        pair = subject.pair
        self._twin: TFLiteModel = stack.enter_context(
            closing(open_tflite(pair.compressed, subject.twin_kernels))
        )
        self._twin_encoder = Encoder(pair.preprocess, self._twin.signature.input)
        self._original: HostModel | None = None
        if pair.original is not None:
            self._original = stack.enter_context(
                closing(open_original(pair.original, self._twin.signature.input))
            )
            self._encoder = Encoder(pair.preprocess, self._original.signature.input)
        self._same_device = _is_the_runs_own(subject.about, device)
        self._parting = self._parting_finder(stack)
        self._loss = self._loss_finder(stack)
        self._seeds = self._on_seeds()

    # Votes.

    def evidence(self, images: NDArray[np.uint8], findings: Sequence[Finding]) -> list[Evidence]:
        """Return the table of each finding, but for its layers."""
        path, decoder = self._subject.pair.compressed, self._subject.about.arms[Arm.TWIN]
        inputs = self._twin_encoder.encode(images)
        with ThreadPoolExecutor(1, thread_name_prefix="edgeflare-device") as pool:
            asked = pool.submit(ask_device, self._device, path, decoder, inputs)
            as_in_the_run = ExecutionMode(Arm.TWIN, self._subject.twin_kernels, 1)
            host = ask_host(path, decoder, inputs, {as_in_the_run: self._twin})
            originals = self._ask_original(images)
            own, others = asked.result()
        twin = host[as_in_the_run]
        provenance = self._device.provenance
        return [
            Evidence(
                original=originals[at],
                twin=twin[at],
                host=tuple(votes[at] for votes in host.values()),
                device=own[at],
                others=tuple(votes[at] for votes in others.values()),
                recorded=_recorded(findings[at]) if self._same_device else (),
                same_runtime=self._twin.runtime
                == f"{provenance.runtime} {provenance.runtime_version}",
                same_machine=_architecture(platform.machine()) == _architecture(provenance.machine),
                seeds=self._seeds,
                classes=self._subject.about.classes,
            )
            for at in range(len(findings))
        ]

    def _ask_original(self, images: NDArray[np.uint8]) -> Sequence[Vote | None]:
        if self._original is None:
            return [None] * len(images)
        decoder = self._subject.about.arms[Arm.ORIGINAL]
        inputs = self._encoder.encode(images)
        return ask(ExecutionMode(Arm.ORIGINAL), self._original, decoder, inputs, OTHER_REPEATS)

    # Seeds.

    def _on_seeds(self) -> dict[str, Disagreement]:
        """Return how the arms disagree on the seeds, as the run's journal has it."""
        rows = [rows[0] for _, rows in sorted(self._subject.seed_rows.items())]
        outcomes = [one.outcome for one in from_rows(self._subject.about.reading, rows)]
        if len(outcomes) < _LEAST_SEEDS:
            return {}
        arms = [arm for arm in Arm if all(arm in outcome.answers for outcome in outcomes)]
        labels: dict[Arm, Labels] = {
            arm: [outcome[arm].label for outcome in outcomes] for arm in arms
        }
        spread = {
            arm: np.stack([outcome[arm].probabilities for outcome in outcomes]) for arm in arms
        }
        found: dict[str, Disagreement] = {}
        pairs = [(Arm.ORIGINAL, Arm.TWIN, True), (Arm.TWIN, Arm.DEVICE, self._same_device)]
        for first, second, known in pairs:
            if known and first in labels and second in labels:
                both = (spread[first], spread[second])
                one = disagreement(labels[first], labels[second], both)
                # It is the twin that is shown other images, in its own place or the device's.
                wanted = spread[first] if second is Arm.TWIN else spread[second]
                found[f"{first}-{second}"] = self._explained(one, wanted)
        return found

    def _explained(self, found: Disagreement, wanted: Probabilities) -> Disagreement:
        """Try other readings on the twin: what makes it agree with the arm that it should."""
        pair, about, source = self._subject.pair, self._subject.about, self._subject.seeds
        shape = image_shape(self._twin.signature.input)
        ids = sorted(self._subject.seed_rows)[:MOST_SEEDS]
        if source is None:
            return found
        try:
            seeds = load_seeds(source, shape, pair.preprocess.resize, ids[-1] + 1)
        except UserError:
            return found
        if len(seeds) <= ids[-1]:
            return found

        def answer(inputs: NDArray[np.generic]) -> Probabilities:
            return about.arms[Arm.TWIN].decode(self._twin.submit(inputs).result()).probabilities

        ways = readings(self._twin, pair.preprocess, answer)
        return explained(found, seeds.images[ids], wanted[: len(ids)], ways)

    # Layers.

    def explanation(
        self, finding: Finding, image: NDArray[np.uint8], table: Evidence
    ) -> Explanation:
        """Look at the layers, and judge."""
        asked = sum(len(vote.labels) for vote in (table.device, *table.others))
        parting, loss = self._layers(image, MOST_DEVICE_QUERIES - asked)
        owns = [layer.own for layer in parting.layers if layer.own is not None]
        evidence = replace(
            table,
            compression_in_layer=(loss.most is not None) if loss.layers else None,
            kernel_in_layer=any(own.parted for own in owns) if owns else None,
        )
        return Explanation(
            finding,
            self._device.profile.name,
            judge(evidence),
            evidence,
            parting,
            loss,
            asked + parting.device_runs,
        )

    def _layers(
        self, image: NDArray[np.uint8], most_runs: int
    ) -> tuple[KernelOnset, CompressionError]:
        if isinstance(self._parting, str):
            return KernelOnset("none", note=self._parting), CompressionError(note=self._parting)
        parting, twin = self._parting.find(_one(self._twin, self._twin_encoder, image), most_runs)
        if isinstance(self._loss, str) or self._original is None:
            return parting, CompressionError(note=str(self._loss))
        if not twin:
            return parting, CompressionError(note="the twin's layers cannot be seen")
        return parting, self._loss.find(twin, _one(self._original, self._encoder, image))

    def _parting_finder(self, stack: ExitStack) -> KernelLocalizer | str:
        """Return what finds where device and twin part, or why nothing can."""
        path = self._subject.pair.compressed
        content = path.read_bytes()
        try:
            self._graph = Graph(content, str(path))
        except UserError as error:
            return str(error)
        finder = KernelLocalizer(
            self._graph,
            content,
            lambda model, capture: self._device.probe(model, capture=capture),
            self._open_on_host,
            self._device.payload_limit_bytes,
        )
        stack.enter_context(closing(finder))
        return finder

    def _loss_finder(self, stack: ExitStack) -> CompressionLocalizer | str:
        """Return what finds where twin and original part, or why nothing can."""
        source = self._subject.pair.original
        if source is None:
            return "there is no original"
        if Path(source).suffix.lower() != ".tflite":
            return "the layers of an original are seen only if it is a .tflite"
        if isinstance(self._parting, str):
            return self._parting
        content = Path(source).read_bytes()
        try:
            finder = CompressionLocalizer(
                self._graph, Graph(content, source), content, self._open_on_host
            )
        except UserError as error:
            return str(error)
        stack.enter_context(closing(finder))
        return finder

    def _open_on_host(self, model: bytes, capture: bool) -> HostProbe:
        return HostProbe(model, self._subject.twin_kernels, capture=capture)


def _one(model: Evaluator, encoder: Encoder, image: NDArray[np.uint8]) -> Values:
    return encoder.encode(image).reshape(model.signature.input.shape)


def _recorded(finding: Finding) -> tuple[int | None, ...]:
    return tuple(seen.get(Arm.DEVICE.value) for seen in finding["seen"])


def _is_the_runs_own(about: RunHeader, device: Device) -> bool:
    """Whether this is a device of the run, and still answers as it did."""
    now = device.provenance.to_json()
    return any(
        known["name"] == device.profile.name
        and all(known["provenance"].get(key) == now[key] for key in _DECIDES_ANSWERS)
        for known in about.devices
    )


def _architecture(machine: str) -> str:
    return {"arm64": "aarch64", "AMD64": "x86_64"}.get(machine, machine)
