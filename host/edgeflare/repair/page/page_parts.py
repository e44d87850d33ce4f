"""The parts of the page of a repair: each a heading, what it is about, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import details, number
from edgeflare.repair.judging.judged_inputs import SetName
from edgeflare.repair.judging.judgement import SCORED, Judgement, SetJudgement
from edgeflare.repair.precision_details import Residual
from edgeflare.repair.repair_document import (
    OnDevice,
    RepairDocument,
    SearchComparison,
    TriedCandidate,
)
from edgeflare.repair.repair_terminal import bytes_text, ratio_text, repairer_rows
from edgeflare.repair.shift_details import FoundShifts, ShiftDetails

CANDIDATES = "candidates"
"""The name of the part that the figure belongs to."""

_SCORE = (
    "Score: the mean over these sets of deviating and big inputs after, over those before."
    " Time: of an inference, over that of the model before, measured in turns on the device where"
    " that is greatest; a file with the same operators takes the same. Interval: 99 % of the median"
    " ratio, on each device; one is beyond the limit of time where all of it is. The front has the"
    " candidates that no other one betters in score, time and bytes."
)


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table.

    Attributes:
        title: what it is of.
        header: of its columns.
        rows: their cells; the first of each names the row.

    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of the page.

    Attributes:
        name: its place in the address of the page.
        title: its heading.
        words: what its tables show, in a sentence or more.
        tables: those of them that have rows are shown.
        facts: names and values of what stands alone.

    """

    name: str
    title: str
    words: str
    tables: Sequence[PageTable]
    facts: Sequence[tuple[str, str]] = ()


def page_parts(document: RepairDocument) -> Iterator[PagePart]:
    """Yield the parts of the page, in their order."""
    yield candidate_part(document)
    if document.judged is not None:
        yield judged_part(document.chosen, document.judged, document.on_devices)
    if document.residual is not None:
        yield residual_part(document.residual)
    for place, candidate in enumerate(document.candidates):
        yield from detail_parts(place, candidate, document.classes)
    if document.again is not None:
        yield search_part(document.again)


def candidate_part(document: RepairDocument) -> PagePart:
    """Return the candidates, and those that are set aside with the reason."""
    tried = document.candidates
    header = ("candidate", "mark", "score", *SCORED, "time", "interval", "bytes", "seconds to make")
    rows = [_candidate(document, one, one.sets) for one in tried if one.sets is not None]
    aside = [(one.name, one.set_aside) for one in tried if one.set_aside is not None]
    return PagePart(
        CANDIDATES,
        "Candidates",
        _SCORE,
        [
            PageTable("Deviations on the inputs to choose by", header, rows),
            PageTable("Set aside", ("candidate", "why"), aside),
        ],
    )


def _candidate(document: RepairDocument, one: TriedCandidate, sets: Judgement) -> Sequence[str]:
    marks = [
        *(["chosen"] if one.name == document.chosen else []),
        *(["front"] if one.name in document.front else []),
        *(["beyond the limits"] if one.needs else []),
    ]
    intervals = (f"{cost.ratio_low:.2f} to {cost.ratio_high:.2f}" for cost in one.latency)
    return (
        one.name,
        ", ".join(marks),
        number(one.score, 2),
        *(_change(each.before.deviating, each.after.deviating) for each in sets.scored),
        ratio_text(one.latency_ratio),
        ", ".join(intervals) or "–",
        bytes_text(one.bytes),
        number(one.seconds),
    )


def _change(before: int, after: int) -> str:
    return f"{before:,} → {after:,}"


def residual_part(residual: Residual) -> PagePart:
    """Return the error that each block of the model before adds, the greatest first."""
    scores = residual.scores
    by_name = {one.name: one for one in residual.blocks}
    rows = [
        [name, by_name[name].tensor, f"{scores[name]:.4f}"]
        for name in sorted(scores, key=lambda name: -scores[name])
        if name in by_name
    ]
    return PagePart(
        "residual",
        "Block to blame",
        "The error that the operators of each block add themselves, by the size of what they make,"
        " in the model before.",
        [PageTable("blocks", ("block", "tensor", "error"), rows)],
        [("blamed", residual.blamed or "none")],
    )


def judged_part(
    chosen: str | None, judgement: Judgement, on_devices: Sequence[OnDevice]
) -> PagePart:
    """Return the chosen candidate on the inputs that judge, on the host and on each device."""
    return PagePart(
        "judged",
        "The chosen candidate",
        "An input deviates where the label is not the original's, ties included; it is big where"
        " the original's two best probabilities are more than 1/128 apart, and strict without a"
        " tie. Mended inputs deviate before and not after, broken ones the other way round; p is"
        " that of a sign test.",
        [
            judged_table(chosen, judgement),
            _accuracy(judgement.by_set),
            PageTable(
                "The same inputs on the devices",
                ("device", "deviating", "the label that the host foretold"),
                [
                    (one.device, _change(*one.deviating), f"{one.same_labels:,} of {one.asked:,}")
                    for one in on_devices
                ],
            ),
        ],
    )


def judged_table(chosen: str | None, judgement: Judgement) -> PageTable:
    """Return a table of the sets of inputs that judge the chosen candidate."""
    header = ("set", "inputs", "deviating", "big", "strict", "mended", "broken", "p")
    rows = [
        (
            name,
            f"{one.after.asked:,}",
            _change(one.before.deviating, one.after.deviating),
            _change(one.before.big, one.after.big),
            _change(one.before.strict, one.after.strict),
            f"{one.mended:,}",
            f"{one.broken:,}",
            f"{one.p:.1g}",
        )
        for name, one in judgement.by_set.items()
    ]
    return PageTable(f"{chosen} on the inputs that judge", header, rows)


def _accuracy(sets: Mapping[SetName, SetJudgement]) -> PageTable:
    rows = [
        (
            name,
            f"{one.after.labelled:,}",
            " → ".join(number(figures.right, 0) for figures in (one.before, one.after)),
            f"{one.accuracy.mended:,}",
            f"{one.accuracy.broken:,}",
            f"{one.accuracy.p:.1g}",
        )
        for name, one in sets.items()
        if one.accuracy is not None
    ]
    header = ("set", "labelled", "right", "right only after", "right only before", "p (McNemar)")
    return PageTable("By true labels", header, rows)


def search_part(again: SearchComparison) -> PagePart:
    """Return the run and the search of the repaired model side by side."""
    by = again.stopped_by
    stopped = f" It was stopped before its end: {INTERRUPTED_BY.get(by, by)}." if by else ""
    rows = [
        (
            when,
            f"{one.deviating_seeds:,}",
            f"{one.findings:,}",
            "–" if one.success_rate is None else f"{one.success_rate:.1%}",
            number(one.mean_queries),
        )
        for when, one in (("before", again.before), ("after", again.after))
    ]
    header = ("model", "deviating seeds", "findings", "success", "mean queries")
    return PagePart(
        "again",
        "Searched again",
        f"The run, and the same search of the repaired model, by {again.strategy}.{stopped}",
        [PageTable("Searches", header, rows)],
    )


def detail_parts(
    place: int, candidate: TriedCandidate, classes: Sequence[str]
) -> Iterator[PagePart]:
    """Yield a part for each section of a candidate's details.

    What shifts and repairers do have parts of their own. Of whatever else a method says, objects in
    a list or by name are a table, and the rest are facts.

    Args:
        place: of the candidate among all.
        candidate: the candidate.
        classes: their names, perhaps none.

    """
    shifts = candidate.details.shifts
    if shifts is not None:
        yield from _shift_parts(shifts, classes, f"-{place}")
    for name, section in msgspec.to_builtins(candidate.details).items():
        told = ("repairers", "shifts") if name == "shifts" else ()
        values = {key: value for key, value in section.items() if key not in told}
        yield PagePart(
            f"{name}-facts-{place}",
            f"{name.capitalize()}: {candidate.name}",
            "",
            [_table(key, rows) for key, value in values.items() if (rows := _rows(value))],
            details({key: value for key, value in values.items() if not _rows(value)}),
        )


def _rows(value: object) -> list[Mapping[str, Any]]:
    """Return the rows of what can be a table: objects in a list, or by name in an object."""
    if isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values()):
        return [{"": name, **one} for name, one in value.items()]
    if isinstance(value, list | tuple) and all(isinstance(one, Mapping) for one in value):
        return list(value)
    return []


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> PageTable:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return PageTable(
        title.replace("_", " "),
        [key.replace("_", " ") for key in keys],
        [[_cell(key, row.get(key)) for key in keys] for row in rows],
    )


def _cell(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, text in details(value)) or "–"
    return ", ".join(text for _, text in details({key: value})) or "–"


def _shift_parts(shifts: ShiftDetails, classes: Sequence[str], suffix: str) -> Iterator[PagePart]:
    """Yield what each repairer does, and the shifts; the suffix ends the names of the parts."""
    header = (
        "repairer",
        "repaired",
        "induced on seeds",
        "induced on agreeing",
        "net",
        "as they come",
    )
    yield PagePart(
        f"repairers{suffix}",
        "Repairers",
        "Shares of the held-out inputs, a fifth of the seeds at a time. Net: by how many points"
        " deviations fall over triggers, agreeing inputs and seeds, with its 95 % interval. As"
        " they come: deviations after over those before, on inputs that are sampled without the"
        " original.",
        [PageTable("On held-out folds", header, repairer_rows(shifts.repairers))],
    )
    yield PagePart(
        f"shifts{suffix}",
        "Shifts",
        "By how many steps the boundary between two classes moves in favour of the first;"
        f" a step is {shifts.shifts.step:g}.",
        [_shifts(shifts.shifts, classes)],
    )


def _shifts(shifts: FoundShifts, classes: Sequence[str]) -> PageTable:
    rows = [
        (*(class_name(classes, label) for label in one.classes), f"{one.steps:+}")
        for one in shifts.pairs
    ]
    return PageTable("Shifts", ("class", "against", "steps"), rows)
