"""The sections of a repair's page that single methods fill: shifts and precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import count_of, details
from edgeflare.pages.page import Block, Facts, Section, Sentences, Table
from edgeflare.repair.repair_document import RepairDocument, TriedCandidate
from edgeflare.repair.shift_details import REPAIRERS, FoundShifts, ShiftDetails
from edgeflare.statistics.bootstrap import Estimate

_REPAIRERS = (
    "Shares of the held-out inputs, a fifth of the seeds at a time. Net: by how many points"
    " deviations fall over triggers, agreeing inputs and seeds. As they come: deviations after over"
    " those before, on inputs that are sampled without the original."
)


def repairers_section(document: RepairDocument) -> Section:
    """Return what shifts were fitted to, and what each of the repairers does."""
    shifts = [
        candidate.details.shifts
        for candidate in document.candidates
        if candidate.details.shifts is not None
    ]
    blocks = [block for shift in shifts for block in _repairers(shift)]
    return Section(id="repairers", title="Repairers", words=_REPAIRERS, blocks=blocks)


def _repairers(shifts: ShiftDetails) -> Iterator[Block]:
    """Yield what shifts were fitted to, and the effect of each repairer on held-out folds."""
    inputs, queries = shifts.inputs, shifts.queries
    fitted = (
        f"{inputs.triggers:,} triggers and their seeds, {inputs.near_boundary_agreeing:,}"
        f" near-boundary inputs that agree, {inputs.near_boundary_deviating:,} that do not"
        f" ({queries.known + queries.near_boundary:,} queries)."
    )
    lost = count_of(inputs.not_reproduced, "trigger")
    left = f"{lost} left out, without a deviation here and now."
    yield Sentences([fitted, left] if inputs.not_reproduced else [fitted])
    induced = ("induced on seeds", "induced on agreeing")
    yield Table(
        title="On held-out folds",
        header=("repairer", "repaired", *induced, "net", "as they come"),
        rows=[
            (
                REPAIRERS[name],
                f"{repairer.repair_ratio:.1%}",
                f"{repairer.inducing_ratio:.1%}",
                f"{repairer.induced_agreeing:.1%}",
                _points(repairer.net),
                ratio_text(repairer.unguided_ratio),
            )
            for name, repairer in shifts.repairers.items()
        ],
        note="Net is in points, with its 95 % interval.",
    )


def _points(net: Estimate) -> str:
    return f"{100 * net.value:+.1f} ({100 * net.low:+.1f} … {100 * net.high:+.1f})"


def blamed_section(document: RepairDocument) -> Section:
    """Return which block of the model before is to blame, and the error of each."""
    return Section(id="residual", title="Block to blame", blocks=list(_blamed(document)))


def _blamed(document: RepairDocument) -> Iterator[Block]:
    """Yield which block of the model before is to blame, and the error of each."""
    residual = document.residual
    if residual is not None:
        yield Sentences([] if residual.blamed is None else [f"To blame: {residual.blamed}."])
        tensors = {block.name: block.tensor for block in residual.blocks}
        ranked = sorted(residual.scores.items(), key=lambda score: -score[1])
        yield Table(
            title="Errors of the blocks",
            header=("block", "tensor", "error"),
            rows=[
                (name, tensors[name], f"{score:.4f}") for name, score in ranked if name in tensors
            ],
            note="What the operators of each add themselves, by the size of what they make, in the"
            " model before.",
            numbers_from=2,
            most=3,
            order="worst",
            missed_least=("tensor",),
        )


def details_section(document: RepairDocument) -> Section:
    """Return what methods say of their candidates."""
    told = [
        block
        for candidate in document.candidates
        for block in _details(candidate, document.classes)
    ]
    return Section(id="details", title="What methods say", blocks=told, brief=False)


def _details(candidate: TriedCandidate, classes: Sequence[str]) -> Iterator[Block]:
    """Yield what a method says of a candidate, but for what shifts have tables of their own for.

    Objects in a list are a table, and the rest are facts.
    """
    shifts = candidate.details.shifts
    for name, section in msgspec.to_builtins(candidate.details).items():
        told = ("repairers", "shifts") if name == "shifts" else ()
        values = {key: value for key, value in section.items() if key not in told}
        facts = details({key: value for key, value in values.items() if not _rows(value)})
        yield Facts(f"{name.capitalize()}: {candidate.name}", facts)
        yield from (_table(key, rows) for key, value in values.items() if (rows := _rows(value)))
    if shifts is not None:
        yield _moved(shifts.shifts, classes)


def _rows(value: object) -> list[Mapping[str, Any]]:
    """Return the rows of what can be a table: objects in a list."""
    if isinstance(value, list | tuple) and all(isinstance(element, Mapping) for element in value):
        return list(value)
    return []


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return Table(
        title=title.replace("_", " "),
        header=[key.replace("_", " ") for key in keys],
        rows=[[_cell(row.get(key)) for key in keys] for row in rows],
    )


def _cell(value: object) -> str:
    return ", ".join(text for _, text in details({"": value})) or "–"


def _moved(shifts: FoundShifts, classes: Sequence[str]) -> Table:
    """Return the boundaries that shifts move."""
    rows = [
        (*(class_name(classes, label) for label in pair.classes), f"{pair.steps:+}")
        for pair in shifts.pairs
    ]
    return Table(
        title="Shifts",
        header=("class", "against", "steps"),
        rows=rows,
        note="By how many steps the boundary between two classes moves in favour of the first; a"
        f" step is {shifts.step:g}.",
    )


def ratio_text(ratio: float | None) -> str:
    """Return a ratio of times or counts as a page has it; a dash where it is not known."""
    return "–" if ratio is None else f"× {ratio:.2f}"
