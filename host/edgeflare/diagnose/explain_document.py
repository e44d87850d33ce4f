"""The explanations of a run: `explain.json`, schema `edgeflare.explain/v1`.

docs/explain/ says what each figure means.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, UnsetType

from edgeflare.core.answer import Failure
from edgeflare.core.goal import Cause
from edgeflare.core.query import Arm
from edgeflare.devices.profile import Precision
from edgeflare.devices.provenance import Provenance
from edgeflare.diagnose.compression_error import CoarseLayer, CutOff, Grade, LayerShare
from edgeflare.diagnose.layer_difference import Difference, KernelOnset, LayerName
from edgeflare.diagnose.layer_matching import MatchedBy
from edgeflare.diagnose.option_differences import OptionDifference
from edgeflare.diagnose.seed_disagreement import Disagreement
from edgeflare.diagnose.stage_votes import ByStages
from edgeflare.diagnose.verdict import OF_KERNELS, Verdict
from edgeflare.errors import UserError
from edgeflare.models.non_finite_values import NonFiniteOnset
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Amount, Count, CountFromOne, Number, Sha256
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import RunHeader
from edgeflare_protos import __version__

EXPLANATIONS: Final = "explain.json"
"""Name of the document in the run directory."""

SAVE_SECONDS: Final = 10.0
"""Seconds between two writes of the file while findings are explained; a kill loses no more, unless
writing takes more than a tenth of that."""

SeedId = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+(?!\n)$")]
"""A seed's id as a key of JSON."""


class ExplainDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.explain/v1"
):
    """Why the findings of a run deviate, and where.

    Attributes:
        edgeflare: version that wrote the document.
        pair: as in run.json.
        pending: what an explanation that was stopped did not reach; empty of seeds after one that
            came to its end.
        devices: provenance of the devices that were asked, by name.
        findings: explained findings, by the seed's id.

    """

    edgeflare: str
    pair: ExplainedPair
    pending: PendingFindings
    devices: Mapping[str, Provenance]
    findings: Mapping[SeedId, ExplainedFinding]


class ExplainedPair(msgspec.Struct, frozen=True, kw_only=True):
    """The pair of the run.

    Attributes:
        name: name of the pair.
        fingerprint: digest of its files and settings.

    """

    name: str
    fingerprint: str


class PendingFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Findings that are still to be explained.

    Attributes:
        device: the device that was named with --device; null for the run's own.
        seed_ids: seeds whose findings were to be explained too, but are not yet.

    """

    device: str | None
    seed_ids: tuple[Count, ...]


class ExplainedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Why a finding deviates, and where it begins.

    Attributes:
        seed_id: id of the seed that the finding came from.
        file: path relative to the run directory.
        sha256: digest of the image's file.
        cause: cause from labels alone, as in run.json.
        device: name of the device that was asked.
        verdict: what is to blame.
        next_step: what to do next, without a full stop; empty where nothing is known to help.
        evidence: what the verdict is derived from.
        device_and_twin: where device and twin part.
        twin_and_original: where twin and original part.
        non_finite: where NaN or infinity begins, by arm that was seen; null where all values are
            finite.
        device_queries: inputs that the device was sent for this finding.

    """

    seed_id: Count
    file: str
    sha256: Sha256
    cause: Cause | None
    device: str
    verdict: Verdict
    next_step: str
    evidence: ExplainedEvidence
    device_and_twin: KernelOnset
    twin_and_original: CompressionLoss
    non_finite: Mapping[str, NonFiniteOnset | None]
    device_queries: Count

    @property
    def begins_in(self) -> LayerName | None:
        """The layer that the verdict points at; None where it points at none."""
        if self.verdict.name in OF_KERNELS:
            return self.device_and_twin.onset
        if self.verdict.name != "compression":
            return None
        loss = self.twin_and_original
        return loss.most or next(iter(loss.coarse), None)


class ExplainedEvidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a verdict is derived from.

    Attributes:
        votes: what was run, and what it decided.
        recorded: the device's labels when the run verified the finding; empty where that was
            another device.
        stages: the device with stages of its own. Absent where it has none of its own; the votes
            are then with the pair's.
        same_runtime: whether host and device have the same runtime in the same version.
        same_machine: whether host and device have one architecture.
        seeds: how two arms disagree on the seeds, as original-twin.

    """

    votes: Annotated[tuple[ExplainedVote, ...], msgspec.Meta(min_length=2)]
    recorded: tuple[int | None, ...]
    stages: ExplainedStages | None = None
    same_runtime: bool
    same_machine: bool
    seeds: Mapping[str, Disagreement]


class ExplainedVote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answers of one execution mode to the input, each time that it was asked.

    Attributes:
        arm: arm that ran the model.
        kernels: the kernels that were asked for; null for an original, which has no choice.
        threads: interpreter threads.
        delegated_nodes: nodes that a delegate or an accelerator took; null where it is not known.
        total_nodes: nodes of the model, those that an accelerator did not take among them. Of
            accelerators alone, as the next two.
        precision: what the accelerator computes in: float16 where it likes, or float32 throughout.
        fallback: whether nodes that the accelerator does not take run on the CPU.
        labels: each time that it was asked; null where it failed.
        outputs_crc32: checksum of the raw outputs, each time. Rows beyond the number of objects
            that TFLite_Detection_PostProcess found, which it does not write, are taken for zeros.
        tied: whether the two largest raw outputs were equal, the first time.
        failure: why there was no answer, the first time; null where there was one.
        probabilities: probability of each class, the first time; empty where it failed.
        described: the first answer in words, where a label says too little: a score and its side, a
            text, objects, or values or a mask with their distance or mean IoU to the original's
            (the twin's, where there is no original). Absent elsewhere.

    """

    arm: Arm
    kernels: str | None
    threads: CountFromOne
    delegated_nodes: Count | None
    total_nodes: Count | UnsetType | None = UNSET
    precision: Precision | UnsetType | None = UNSET
    fallback: bool | UnsetType | None = UNSET
    labels: Annotated[tuple[int | None, ...], msgspec.Meta(min_length=2)]
    outputs_crc32: tuple[Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{8}(?!\n)$")], ...]
    tied: bool
    failure: Failure | None
    probabilities: tuple[Number, ...]
    described: str | None = None


@dataclass(frozen=True, slots=True)
class ExplainedStages(ByStages[ExplainedVote]):
    """The device's answers with stages that are its own or the pair's."""


class CompressionLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What compression did to the network.

    Attributes:
        first: the first layer that parts by more than quantization explains.
        most: the one of those beyond that took most of the margin, a twentieth of its error at
            least.
        margin: the original's margin less the compressed model's, in scores.
        note: what could not be done, as a sentence without its full stop; else empty.
        unmatched: layers that the original has no counterpart of.
        coarse: layers whose quantization is far from the best, the largest share first; none where
            there is a layer in most.
        spread: the layers with the largest shares, where the error is ordinary rounding.
        grade: what is to blame, where compression is; null where the layers were not seen, or the
            original is not finite.
        said: the grade in words.
        input_cut_off: as cut_off of a layer, of the model's input.
        layers: those that the original has a counterpart of, in execution order.

    """

    first: LayerName | None
    most: LayerName | None
    margin: Number | None
    note: str
    unmatched: tuple[LayerName, ...]
    coarse: tuple[CoarseLayer, ...]
    spread: Annotated[tuple[LayerShare, ...], msgspec.Meta(max_length=3)]
    grade: Grade | None
    said: str
    input_cut_off: CutOff | None
    layers: tuple[LayerLoss, ...]


@dataclass(frozen=True, slots=True)
class LayerLoss(LayerName):
    """What compression did to one layer.

    Attributes:
        matched_by: how the original's layer was found.
        total: difference of the two models' tensors; null where they were not both seen.
        residual: largest difference that is new here, in units of the output.
        explained: what quantization explains of it there.
        constants: difference of the constant that is farthest off by what rounding explains, in its
            own steps; null where none could be compared.
        constants_explained: what rounding explains of it.
        constants_overflow: whether it is a bias that its integers cannot hold.
        options: those that decide numbers and are not the original's, with both values.
        beyond: whether the error is larger than quantization explains.
        margin_share: share of the margin's error that the layer is to blame for.
        cut_off: shares of the original's values that lie below and above the compressed model's
            range by more than a step; null where it has none.

    """

    matched_by: MatchedBy
    total: Difference | None
    residual: Amount
    explained: Amount
    constants: Amount | None
    constants_explained: Amount | None
    constants_overflow: bool
    options: tuple[OptionDifference, ...]
    beyond: bool
    margin_share: Number | None
    cut_off: CutOff | None


def load_explanations(directory: RunDirectory, fingerprint: str) -> ExplainDocument | None:
    """Return a run's explanations; None where there are none, or they belong to another pair.

    Args:
        directory: the run directory.
        fingerprint: fingerprint of the run's pair.

    """
    if not (directory.path / EXPLANATIONS).exists():
        return None
    try:
        document = _READER.read(directory.inside(EXPLANATIONS))
    except UserError as error:
        raise UserError(
            f"{error}; make it again with `edgeflare explain {directory.path}`"
        ) from None
    return document if document.pair.fingerprint == fingerprint else None


def _contradictions(document: ExplainDocument) -> Iterator[str]:
    for key, entry in document.findings.items():
        if entry.device not in document.devices:
            yield f"findings.{key}.device is {entry.device!r}, but devices has none of this name"


_READER = DocumentReader(ExplainDocument, _contradictions)


class Explanations:
    """The explanations of a run while they are made; earlier ones are kept.

    Attributes:
        pending: ids of the seeds whose findings are still to be explained.

    """

    def __init__(
        self,
        directory: RunDirectory,
        header: RunHeader,
        before: ExplainDocument | None,
        pending: PendingFindings,
        device: str | None,
    ) -> None:
        """Begin, and list in the file which findings are to be explained.

        Args:
            directory: the run directory.
            header: the run's header.
            before: the earlier explanations, as `load_explanations` returns them.
            pending: the findings that are still to be explained, perhaps on another device.
            device: the device that the user named; None for the run's own devices.

        """
        self.pending = list(pending.seed_ids)
        self._pending_on = pending.device
        self._directory = directory
        self._header = header
        self._devices = dict(before.devices) if before else {}
        self._findings = dict(before.findings) if before else {}
        self._device = device
        self.save()

    def asked(self, device: str, provenance: Provenance) -> None:
        """Record the provenance of a device that is asked from here on."""
        self._devices[device] = provenance

    def add(self, finding: ExplainedFinding) -> None:
        """Add an explanation, which replaces an earlier one of the same finding."""
        self._findings[str(finding.seed_id)] = finding
        if self._device == self._pending_on and finding.seed_id in self.pending:
            self.pending.remove(finding.seed_id)
        if time.monotonic() - self._saved >= max(SAVE_SECONDS, 10 * self._save_took):
            self.save()

    def save(self) -> None:
        """Write the file."""
        begun = time.monotonic()
        named = {entry.device for entry in self._findings.values()}
        pair = self._header.pair
        document = ExplainDocument(
            edgeflare=__version__,
            pair=ExplainedPair(name=pair.name, fingerprint=pair.fingerprint),
            pending=PendingFindings(device=self._pending_on, seed_ids=tuple(self.pending)),
            devices={name: self._devices[name] for name in sorted(named)},
            findings={key: self._findings[key] for key in sorted(self._findings, key=int)},
        )
        content = json_bytes(msgspec.to_builtins(document))
        write_atomically(self._directory.path / EXPLANATIONS, content)
        self._saved = time.monotonic()
        self._save_took = self._saved - begun


def left_over(before: ExplainDocument | None, device: str | None) -> list[int]:
    """Return the ids of the seeds whose findings an interrupted `explain` left unexplained."""
    if before is None or before.pending.device != device:
        return []
    return list(before.pending.seed_ids)
