"""The result of a survey: `survey.json`, schema `edgeflare.survey/v1`.

docs/survey/ says what each figure means.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from edgeflare.errors import UserError
from edgeflare.models.run_host import RunHost
from edgeflare.models.run_pair import RunPair
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Amount, Count, CountFromOne, Number, Share
from edgeflare.run.run_directory import SURVEY_DOCUMENT, RunDirectory
from edgeflare.run.run_document import RunDevice, StoppedBy
from edgeflare.survey.gates.gate_judgement import DescribedGate
from edgeflare.survey.items.survey_inputs import AskedInputs
from edgeflare.survey.rates.group_differences import GroupDifferences
from edgeflare.survey.rates.rate_interval import FieldInterval, SignedEstimate
from edgeflare.survey.rates.slices import SliceTable, SurveySlice
from edgeflare.survey.record.survey_plan import EarlierEnds, SamplingEnd

WRITTEN_FROM_IT = ("survey.html", "survey.csv", "junit.xml", "summary.md")
"""What `edgeflare report` writes of a survey beside its document."""


class AboutSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """What a survey's document says beside what is computed from its items.

    Attributes:
        edgeflare: version that wrote the document.
        pair: as in run.json.
        devices: as in run.json.
        host: as in run.json.
        classes: names of the classes; empty where they have none.
        plan: all that was asked.
        stopped_by: what ended it: precision, device-queries, time-limit, gates, all-items; or
            before that interrupt (Ctrl-C), sigterm, infrastructure, error, killed; null where
            nothing is known of that.
        seconds: duration of the survey.
        device_queries: device queries for rates.
        overhead_device_queries: device queries for the rest: findings verified, canaries and the
            like.
        gates: what became of each gate.
        findings: deviating inputs that are stored, the strongest of the worst cells first.
        rare: how often the event of the headline happens where severities are drawn continuously;
            null where that was not asked for, or is not known yet.
        warnings: a sentence each.

    """

    edgeflare: str
    pair: RunPair
    devices: Annotated[tuple[RunDevice, ...], msgspec.Meta(min_length=1)]
    host: RunHost
    classes: tuple[str, ...]
    plan: AskedPlan
    stopped_by: StoppedBy | SamplingEnd | None
    seconds: Amount
    device_queries: Count
    overhead_device_queries: Count
    gates: tuple[DescribedGate, ...]
    findings: tuple[SurveyFinding, ...]
    rare: RareEstimate | None
    warnings: tuple[str, ...]


class SurveyDocument(
    AboutSurvey, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.survey/v1"
):
    """How often a compressed model deviates.

    Attributes:
        confidence: confidence with which an interval holds, and those of a table together.
        has_original: whether there is one; without it only kernels are judged.
        inputs: how many there are.
        items: inputs times cells.
        asked: items that the device was asked about.
        labelled: inputs whose label is known.
        distance: what the task's distance is called; null where it measures none.
        truth_measure: what the distance from targets is called, such as mean IoU; null without
            targets.
        overall: all cells but the unchanged one, unless that is the only one.
        unchanged: the inputs as they are.
        by_condition, by_severity, by_class, by_group: what `overall` is made of.
        by_cell: the unchanged inputs first.
        by_device: rates of each of several devices, on the inputs that were given to it; empty for
            a single device.
        pooling: whether the device surprises as often under every condition and severity and in
            every class, which pooled rates assume.
        field: limits of the rate over all where the inputs were themselves drawn at random from the
            field.
        groups: how groups differ, each from each; null where there are not two.
        baseline: what changed since an earlier survey; null where none was named.
        sentence: one sentence for release notes.

    """

    confidence: Share
    has_original: bool
    inputs: CountFromOne
    items: CountFromOne
    asked: Count
    labelled: Count
    distance: str | None
    truth_measure: str | None
    overall: SurveySlice
    unchanged: SurveySlice
    by_condition: SliceTable
    by_severity: SliceTable
    by_cell: SliceTable
    by_class: SliceTable
    by_group: SliceTable
    by_device: SliceTable
    pooling: Pooling
    field: FieldInterval
    groups: GroupDifferences | None
    baseline: SurveyComparison | None
    sentence: str

    @property
    def tables(self) -> dict[str, SliceTable]:
        """The tables of slices by their keys."""
        return {
            "by_condition": self.by_condition,
            "by_severity": self.by_severity,
            "by_cell": self.by_cell,
            "by_class": self.by_class,
            "by_group": self.by_group,
            "by_device": self.by_device,
        }


class AskedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a survey was asked.

    Attributes:
        conditions: their names.
        severities: severities of each condition.
        inputs: the surveyed inputs.
        groups: the column that says the group of each input; null without.
        precision: half the width of the interval over all that is to be reached; null where it is
            no reason to end.
        device_queries: the most that are allowed; null for no bound.
        time_limit_seconds: seconds that asking the device may take; null for no bound.
        earlier: what had been to end the survey, each time before it went on with more.
        confidence: confidence of an interval.
        gates: as the user wrote them.
        findings: deviating inputs that are stored at most.
        rare_queries: device queries for rare events, about; null where these were not asked for.
        rng_seed: seed of all random draws.
        limit: inputs at most, of each label its share; null for all.
        first: inputs at most, from the beginning; null for all.
        ensemble: the host's kernel sets; the first is the twin.

    """

    conditions: tuple[str, ...]
    severities: tuple[CountFromOne, ...]
    inputs: AskedInputs
    groups: str | None
    precision: Number | None
    device_queries: Count | None
    time_limit_seconds: Number | None
    earlier: tuple[EarlierEnds, ...]
    confidence: Share
    gates: tuple[str, ...]
    findings: Count
    rare_queries: Count | None
    rng_seed: Count
    limit: Count | None
    first: Count | None
    ensemble: tuple[str, ...]


class SurveyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A deviating input that is stored.

    Attributes:
        seed_id: the finding's seed in run.json.
        condition: condition that changed the input; "unchanged" for none.
        severity: severity of that condition; 0 for inputs unchanged.
        strength: the finding's strength in run.json.

    """

    seed_id: Count
    condition: str
    severity: Count
    strength: Number | None


class RareEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """How often a rare event happens.

    Attributes:
        value: the mean of the repetitions.
        low, high: the interval from their spread.
        ceiling: an upper limit that does not take for granted that nothing happens where nothing
            was seen.
        unseen_share: share of the ceiling that comes from where nothing was seen.
        repetitions: the estimate of each. One may lie outside of 0 to 1.
        thresholds: levels between the shells, falling.
        device_queries: points that the device was asked about, and checks whether it still answers
            alike.
        host_queries: inputs that the host's arms answered for their levels.
        seconds: duration of the estimate.

    """

    value: Annotated[float, msgspec.Meta(ge=0)]
    low: Share
    high: Share
    ceiling: Share
    unseen_share: Share
    repetitions: Annotated[tuple[float, ...], msgspec.Meta(min_length=2)]
    thresholds: tuple[float, ...]
    device_queries: Count
    host_queries: Count
    seconds: Amount


class Pooling(msgspec.Struct, frozen=True, kw_only=True):
    """Whether items that are pooled differ in how often the device surprises.

    Attributes:
        p_corrected: the least of three permutation tests, after Holm; small where they differ.
        surprises: what it rests on.

    """

    p_corrected: Share
    surprises: Count


class SurveyComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What changed since the baseline.

    Attributes:
        run: the name of the baseline's run directory.
        overall: over all items.
        by_condition: likewise, of each condition.

    """

    run: str
    overall: PairedItems
    by_condition: tuple[PairedItems, ...]


class PairedItems(msgspec.Struct, frozen=True, kw_only=True):
    """The same items in two surveys.

    Attributes:
        condition: condition of the items; null over all.
        both: items that both devices were asked about.
        only_now: items of `both` that deviate now alone.
        only_before: items of `both` that deviated before alone.
        p: two-sided p-value of the sign-flip test of the inputs' changes, which are estimated where
            a device was not asked about all items.
        p_corrected: `p` after Holm over the conditions; over all it is `p`.
        difference: the rate of deviations now less that before.

    """

    condition: str | None
    both: Count
    only_now: Count
    only_before: Count
    p: Share
    p_corrected: Share
    difference: SignedEstimate


def survey_bytes(document: SurveyDocument) -> bytes:
    """Return a document as it is written."""
    return json_bytes(msgspec.to_builtins(document))


def read_survey(directory: RunDirectory) -> SurveyDocument:
    """Return the document of a survey.

    Args:
        directory: the run directory that `edgeflare survey` wrote.

    """
    path = directory.inside(SURVEY_DOCUMENT)
    if not path.is_file():
        raise UserError(
            f"{directory.path} has no {SURVEY_DOCUMENT}: name the run directory of a finished"
            " `edgeflare survey`, or finish it with --resume"
        )
    try:
        return _READER.read(path)
    except UserError as error:
        remedy = ""
        if directory.journal.is_file():
            remedy = (
                f"; move it away, and the command that surveyed writes it anew from"
                f" {directory.journal.name} with --out {directory.path} --resume"
            )
        raise UserError(f"{error}{remedy}") from None


def check_survey(data: bytes, path: Path) -> SurveyDocument:
    """Return a document that was derived from a journal, held to all that one in a file is held to.

    Args:
        data: the document.
        path: the journal.

    """
    return _READER.check(data, path)


_NAMED = {
    "by_condition": ("condition",),
    "by_severity": ("severity",),
    "by_cell": ("condition", "severity"),
    "by_class": ("label",),
    "by_group": ("group",),
    "by_device": ("device",),
}
"""What each slice of a table says that it is the slice of."""


def _contradictions(document: SurveyDocument) -> Iterator[str]:
    if not document.by_cell.slices:
        yield "by_cell.slices is empty, and the unchanged inputs are a cell"
    named: list[tuple[str, SurveySlice, tuple[str, ...]]] = [
        ("overall", document.overall, ()),
        ("unchanged", document.unchanged, _NAMED["by_cell"]),
    ]
    named += [
        (f"{key}.slices[{at}]", slice_, _NAMED[key])
        for key, table in document.tables.items()
        for at, slice_ in enumerate(table.slices)
    ]
    for place, part, keys in named:
        for key in keys:
            if getattr(part, key) is None:
                yield f"{place}.{key} is null, and it is what the slice is of"
        if document.has_original and part.deviation is None:
            yield f"{place}.deviation is null, and has_original says that there is one"
        accuracy = part.accuracy
        if accuracy is not None and (accuracy.original is None) != (accuracy.drop is None):
            yield f"{place}.accuracy has one of original and drop, and the other is null"


_READER = DocumentReader(SurveyDocument, _contradictions)
