"""`repair.json`, schema `edgeflare.repair/v1`: the candidates that were tried, and the outcome.

docs/repair/document.md says what each figure means, and docs/shifts.md what those of shifts do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from edgeflare.models.pair import Pair
from edgeflare.models.run_pair import ModelHashes
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Amount, Count, Number, Share
from edgeflare.repair.candidate_details import NO_DETAILS, CandidateDetails, Residual
from edgeflare.repair.judging.judgement import Figures, Judgement
from edgeflare.repair.judging.judgement_inputs import SeedCounts
from edgeflare.repair.judging.repair_examples import ShownInput
from edgeflare.repair.judging.robustness import Robustness
from edgeflare.repair.labelled_details import (
    ArchitectureRepair,
    CheckpointRepair,
    FairnessRepair,
)
from edgeflare.repair.repair_cost import Latency
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.run.run_directory import REPAIR_DOCUMENT, RunDirectory
from edgeflare.run.run_document import RunDevice, StoppedBy


class RepairDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.repair/v1"
):
    """A repair of a compressed model.

    Attributes:
        edgeflare: version that wrote it.
        pair: the models that are repaired.
        run: path of the run that names the pair; null where the user named the pair.
        devices: on which candidates are judged.
        classes: their names.
        measured_as: what `measured` of figures is the mean of; null where decisions are labels.
        plan: what was asked.
        seeds: how many fit, choose and judge.
        fresh_seeds: inputs of `--test` that are seeds too, with which candidates may be fitted.
        residual: the blocks of the model before and their errors; null where the original has no
            weights to compare with.
        candidates: all that were tried, in their order.
        front: names of the judged candidates with a latency_ratio that no other one betters in
            score, latency_ratio and bytes, in order of latency.
        chosen: name of the candidate that is chosen; null where none surely gains.
        judged: the chosen candidate on inputs that nothing was chosen on; null where none is chosen
            or judged.
        fairness: what became of the dependence on an attribute; null unless `--groups` asks for
            that, which is judged in place of deviations.
        architecture: a repair of the original by "archrepair", judged by accuracy; null of others.
        checkpoints: what the checkpoints of a training have taught; null without `--checkpoints`.
        shown: inputs that judge and that the chosen candidate mends or breaks, those with the
            largest margin of the original first; empty where none is chosen.
        on_devices: the chosen candidate on each device.
        robustness: the model before and the chosen candidate under attack; null unless asked for.
        written: whether there is a repaired model.
        why: why, or why not.
        offered: the best candidate beyond the limits; null where none surely gains more than the
            chosen one.
        repaired: the file that is written, and its cost on the first device; null where none is.
        search: the search before and after; null unless asked for.

    """

    edgeflare: str
    pair: PairToRepair
    run: str | None
    devices: tuple[RunDevice, ...]
    classes: tuple[str, ...]
    measured_as: str | None = None
    plan: RepairRequest
    seeds: SeedCounts
    fresh_seeds: Count = 0
    residual: Residual | None
    candidates: Annotated[tuple[TriedCandidate, ...], msgspec.Meta(max_length=64)]
    front: tuple[str, ...]
    chosen: str | None
    judged: Judgement | None = None
    fairness: FairnessRepair | None = None
    architecture: ArchitectureRepair | None = None
    checkpoints: CheckpointRepair | None = None
    shown: Annotated[tuple[ShownInput, ...], msgspec.Meta(max_length=24)] = ()
    on_devices: tuple[OnDevice, ...] = ()
    robustness: Robustness | None = None
    written: bool = False
    why: str
    offered: OfferedCandidate | None = None
    repaired: RepairedModel | None = None
    search: SearchComparison | None = None

    def tried(self, name: str) -> TriedCandidate | None:
        """Return the candidate of a name, or None."""
        return next((candidate for candidate in self.candidates if candidate.name == name), None)


class PairToRepair(msgspec.Struct, frozen=True, kw_only=True):
    """The pair that is repaired.

    Attributes:
        name: as the user calls it.
        fingerprint: a digest of all that decides the answers.
        sha256: digests of the models, as in run.json.

    """

    name: str
    fingerprint: str
    sha256: ModelHashes

    @classmethod
    def of(cls, pair: Pair) -> PairToRepair:
        """Return what a repair says of a pair."""
        return cls(name=pair.name, fingerprint=pair.fingerprint(), sha256=pair.model_hashes())


class TriedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that was tried.

    Attributes:
        name: the candidate's name; the plan's where that made none.
        seconds: time that it took to make it; candidates made together have equal shares.
        file: path of the file in the folder of the repair; null where it cannot be judged.
        size_bytes: size of the file; null where it could not be made.
        latency_ratio: time for an inference over that before, on the device where that is greatest;
            1 where it has the same operators, null where it cannot be judged or no time of it could
            decide, as `set_aside` says.
        latency: as measured on each device, or of another candidate with the same operators; empty
            where it was not.
        score: what candidates are chosen by; smaller is better, 1 is no change.
        sets: the judgement on the inputs to choose by; null where it cannot be judged.
        set_aside: why it may not be chosen; null where it may.
        needs: the limits that it exceeds, by option, each with what it needs; it is judged all the
            same.
        details: what its method says of it.

    """

    name: str
    seconds: Number
    file: str | None = None
    size_bytes: Count | None = None
    latency_ratio: Amount | None = None
    latency: tuple[Latency, ...] = ()
    score: Number | None = None
    sets: Judgement | None = None
    set_aside: str | None = None
    needs: Mapping[LimitOption, str] = {}
    details: CandidateDetails = NO_DETAILS


LimitOption = Annotated[str, msgspec.Meta(pattern=r"^--max-(size|latency)(?!\n)$")]
"""An option that limits what a repair may cost."""


class BeforeAndAfter(msgspec.Struct, frozen=True):
    """The model before and the repaired one, on one set.

    Attributes:
        before: figures of the model before.
        after: figures of the repaired model.

    """

    before: Figures
    after: Figures


class OnDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The repaired model and the one before on a device, on the inputs that judge.

    Attributes:
        device: the device's name.
        sets: figures by the name of the set.
        inputs: inputs of all sets.
        same_labels: those on which the device gives the label that the host foretold.

    """

    device: str
    sets: Mapping[str, BeforeAndAfter]
    inputs: Count
    same_labels: Count

    @property
    def deviating(self) -> tuple[int, int]:
        """How many inputs of all sets deviate before and after."""
        sets = self.sets.values()
        return sum(input_set.before.deviating for input_set in sets), sum(
            input_set.after.deviating for input_set in sets
        )


class OfferedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """What more cost than the limits allow would give: the best candidate beyond them.

    Attributes:
        candidate: the candidate's name.
        options: what would allow it.
        judged: the judgement on the inputs that judge and on fresh ones.

    """

    candidate: str
    options: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    judged: Judgement


class RepairedModel(Latency, frozen=True, kw_only=True):
    """The repaired model, and the time for an inference before and after.

    Attributes:
        file: name in the folder of the repair.
        sha256: digest of the file.
        recipe: file with the quantizer's recipe; null where the quantizer did not make the file.
        more_in_float: whether it computes more operators in float than the model before.
        size_before_bytes: size of the file before.
        size_bytes: size of the repaired file.

    """

    file: str
    sha256: str
    recipe: str | None
    more_in_float: bool
    size_before_bytes: Count
    size_bytes: Count


class SearchComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The run, and the same search of the repaired model.

    Attributes:
        stopped_by: as in run.json; null for one that was complete.
        strategy: the strategy of both.
        before: the run.
        after: the search of the repaired model.

    """

    stopped_by: StoppedBy | None
    strategy: str
    before: SearchFigures
    after: SearchFigures


class SearchFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a search found: figures of the totals of run.json."""

    seeds: Count
    deviating_seeds: Count
    findings: Count
    success_rate: Share | None
    mean_queries: Amount | None
    median_queries: Amount | None
    queries: Count


def repair_bytes(document: RepairDocument) -> bytes:
    """Return a document as it is written."""
    return json_bytes(msgspec.to_builtins(document))


def read_repair(directory: RunDirectory) -> RepairDocument:
    """Return the document of a repair.

    Args:
        directory: the folder that `edgeflare repair` wrote.

    """
    return _READER.read(directory.inside(REPAIR_DOCUMENT))


def _contradictions(document: RepairDocument) -> Iterator[str]:
    if document.offered is not None and document.tried(document.offered.candidate) is None:
        yield f"offered.candidate is {document.offered.candidate!r}, but candidates has none"
    judged = document.judged, document.fairness, document.architecture, document.checkpoints
    if document.written and judged == (None, None, None, None):
        yield "written is true, but judged is null"


_READER = DocumentReader(RepairDocument, _contradictions)
