"""The sections of a repair's page that single methods fill: by labels, shifts and precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import details
from edgeflare.pages.page import Block, Facts, Section, Sentences, Table
from edgeflare.repair.judging.fairness import Fairness
from edgeflare.repair.labelled_details import (
    MEAN_OF_BOTH,
    CheckpointRepair,
    FairnessRepair,
    LabelledRow,
    RightUnderAttack,
)
from edgeflare.repair.repair_document import RepairDocument, TriedCandidate
from edgeflare.repair.shift_details import REPAIRERS, FoundShifts, ShiftDetails
from edgeflare.statistics.bootstrap import Estimate

_FAIR = (
    "SPD: how much more often the favourable label, the last class, is given in the first group;"
    " AAOD: the mean size of that among inputs without and with that label; EOD: that among inputs"
    " with it. The first group has the lesser value of the attribute. distilled-mean learns the"
    " mean of both answers, without slices."
)

_TAUGHT = (
    "dare tunes the layer before the last towards the surest right checkpoint's; dare-by-labels"
    " learns the labels of the same seeds, and plain those of all, without checkpoints. plain is"
    " taken unless another one is right under every attack on surely more of the seeds that choose."
    " Inputs are attacked by the original's gradient,"
)

_FAIR_SETS = {
    "choose": "On the seeds that fit and choose",
    "judge": "On the seeds that judge",
    "fresh": "On fresh inputs",
}

_REPAIRERS = (
    "Shares of the held-out inputs, a fifth of the seeds at a time. Net: by how many points"
    " deviations fall over triggers, agreeing inputs and seeds. As they come: deviations after over"
    " those before, on inputs that are sampled without the original."
)


def fairness_section(document: RepairDocument, made: FairnessRepair) -> Section:
    """Return the accuracy and the fairness of each candidate, on each part of the inputs."""
    figures = ("rows", "accuracy", "SPD", "AAOD", "EOD")
    tables = part_tables(_FAIR_SETS, ("model", *figures), made.rows, _fairness_cells)
    devices = Table(
        title=f"{document.chosen} on the devices, on the seeds that judge",
        header=("device", *figures),
        rows=[(device.device, *_fairness_cells(device.judge)) for device in made.devices],
    )
    columns = ", ".join(map(str, made.columns))
    said = [
        f"{document.seeds}.",
        f"Attribute: column {columns}.",
        *_without_training(document, made),
    ]
    return Section(
        id="fairness", title="Fairness", words=_FAIR, blocks=[Sentences(said), *tables, devices]
    )


def checkpoint_section(document: RepairDocument, made: CheckpointRepair) -> Section:
    """Return how often each candidate is right, as it is and under attack, by part."""
    row = made.rows[0].choose
    figures = ("inputs", "right", "attacked", *row.kept)
    devices = Table(
        title=f"{document.chosen} on the devices, on the seeds that judge",
        header=("device", *figures),
        rows=[(device.device, *_attacked_cells(device.judge, row)) for device in made.devices],
    )
    teachers = Table(
        title="Checkpoints",
        header=("file", "teaches"),
        rows=[(PurePath(row.file).name, f"{row.taught:,}") for row in made.checkpoints],
        note="Seeds that fit, of which it gives the true label with more confidence than all others"
        " and the model before.",
    )
    titles = {**_FAIR_SETS, "choose": "On the seeds that choose"}
    tables = part_tables(
        titles, ("model", *figures), made.rows, lambda found: _attacked_cells(found, row)
    )
    return Section(
        id="checkpoints",
        title="Checkpoints",
        words=f"{_TAUGHT} within {made.radius:g} levels.",
        blocks=[Sentences([f"{document.seeds}."]), *tables, devices, teachers],
    )


def _attacked_cells(found: RightUnderAttack, like: RightUnderAttack) -> tuple[str, ...]:
    kept = (found.kept.get(attack) for attack in like.kept)
    return (
        f"{found.inputs:,}",
        f"{found.accuracy:.2%}",
        f"{found.attacked:,}",
        *("–" if count is None else f"{count:,}" for count in kept),
    )


def part_tables(
    titles: Mapping[str, str],
    header: Sequence[str],
    rows: Sequence[LabelledRow[Any]],
    cells: Callable[[Any], tuple[str, ...]],
) -> list[Table]:
    """Return a table for each part of the inputs, with a row for each model.

    Args:
        titles: title of each part's table, by the name of the part's figures in a row.
        header: headings, that of the models' names first.
        rows: figures of the models.
        cells: makes the cells behind a model's name of its figures on a part.

    """
    return [
        Table(
            title=title,
            header=header,
            rows=[
                (row.name, *cells(found))
                for row in rows
                if (found := getattr(row, part)) is not None
            ],
        )
        for part, title in titles.items()
    ]


def _without_training(document: RepairDocument, made: FairnessRepair) -> Iterator[str]:
    """Yield that the mean of both answers has no more bias than the chosen model, where so."""
    rows = {row.name: row for row in made.rows}
    mean, chosen = rows[MEAN_OF_BOTH], rows.get(document.chosen or "")
    if chosen is None:
        return
    sides = [(mean.judge, chosen.judge), (mean.fresh, chosen.fresh)]
    if all(plain.bias <= other.bias for plain, other in sides if plain and other):
        yield (
            "The mean of the model's answers to an input with either value of the attribute does as"
            " well, without any training, in twice the time."
        )


def _fairness_cells(one: Fairness) -> tuple[str, ...]:
    return (
        f"{one.rows:,}",
        f"{one.accuracy:.2%}",
        f"{one.spd:+.3f}",
        f"{one.aaod:.3f}",
        f"{one.eod:+.3f}",
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
    left = f"{inputs.not_reproduced:,} triggers are left out: they do not deviate here and now."
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
                ratio_text(repairer.unled_ratio),
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
    """Yield which block of the model before is to blame, by each way, and the error of each."""
    searched = (candidate.details.precision for candidate in document.candidates)
    blamed = dict(
        next((known.blamed for known in searched if known and known.blamed is not None), {})
    )
    residual = document.residual
    if residual is not None:
        blamed["residual"] = residual.blamed
    ways = [f"{block} by {way}" for way, block in blamed.items() if block is not None]
    yield Sentences([f"To blame: {', '.join(ways)}."] if ways else [])
    if residual is not None:
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

    Objects in a list or by name are a table, and the rest are facts.
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
    """Return the rows of what can be a table: objects in a list, or by name in an object."""
    if isinstance(value, Mapping) and all(isinstance(inner, Mapping) for inner in value.values()):
        return [{"": name, **inner} for name, inner in value.items()]
    if isinstance(value, list | tuple) and all(isinstance(element, Mapping) for element in value):
        return list(value)
    return []


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return Table(
        title=title.replace("_", " "),
        header=[key.replace("_", " ") for key in keys],
        rows=[[_cell(key, row.get(key)) for key in keys] for row in rows],
    )


def _cell(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, text in details(value)) or "–"
    return ", ".join(text for _, text in details({key: value})) or "–"


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
