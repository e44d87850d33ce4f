"""The sections of a repair's page that repairs by labels fill: fairness, checkpoints, accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

from edgeflare.pages.facts import number
from edgeflare.pages.page import Section, Sentences, Table
from edgeflare.repair.judging.fairness import Fairness
from edgeflare.repair.judging.judgement import Figures
from edgeflare.repair.labelled_details import (
    MEAN_OF_BOTH,
    Accuracy,
    ArchitectureRepair,
    ArchitectureRow,
    CheckpointRepair,
    FairnessRepair,
    LabelledOnDevice,
    LabelledRow,
    RightUnderAttack,
)
from edgeflare.repair.page.method_sections import ratio_text
from edgeflare.repair.repair_document import RepairDocument

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

_ACCURACY = (
    "Each row is a float model and its compressed form. An input deviates where the two decide"
    " differently. plain is the control: everything is fine-tuned, with as many batches and without"
    " a search. It is taken unless another one is right on surely more of the seeds that choose."
)


def labelled_sections(document: RepairDocument) -> Iterator[Section]:
    """Yield the sections of a repair by labels; none of another one."""
    if document.fairness is not None:
        yield _fairness(document, document.fairness)
    if document.architecture is not None:
        yield _accuracy(document, document.architecture)
        yield _blocks(document.architecture)
    if document.checkpoints is not None:
        yield _checkpoints(document, document.checkpoints)


def _tables(
    header: Sequence[str],
    rows: Sequence[LabelledRow[Any]],
    cells: Callable[[Any], tuple[str, ...]],
    choosing: str = "On the seeds that choose",
) -> list[Table]:
    """Return a table for each part of the inputs, with a row for each model.

    Args:
        header: headings behind that of the models' names.
        rows: figures of the models.
        cells: makes the cells behind a model's name of its figures on a part.
        choosing: title of the first table.

    """
    titles = {"choose": choosing, "judge": "On the seeds that judge", "fresh": "On fresh inputs"}
    return [
        Table(
            title=title,
            header=("model", *header),
            rows=[
                (row.name, *cells(found))
                for row in rows
                if (found := getattr(row, part)) is not None
            ],
        )
        for part, title in titles.items()
    ]


def _devices(
    document: RepairDocument,
    header: Sequence[str],
    devices: Sequence[LabelledOnDevice[Any]],
    cells: Callable[[Any], tuple[str, ...]],
) -> Table:
    return Table(
        title=f"{document.chosen} on the devices, on the seeds that judge",
        header=("device", *header),
        rows=[(device.device, *cells(device.judge)) for device in devices],
    )


def _fairness(document: RepairDocument, made: FairnessRepair) -> Section:
    """Return the accuracy and the fairness of each candidate, on each part of the inputs."""
    figures = ("rows", "accuracy", "SPD", "AAOD", "EOD")
    columns = ", ".join(map(str, made.columns))
    said = [
        f"{document.seeds}.",
        f"Attribute: column {columns}.",
        *_without_training(document, made),
    ]
    tables = _tables(figures, made.rows, _fairness_cells, "On the seeds that fit and choose")
    devices = _devices(document, figures, made.devices, _fairness_cells)
    return Section(
        id="fairness", title="Fairness", words=_FAIR, blocks=[Sentences(said), *tables, devices]
    )


def _fairness_cells(found: Fairness) -> tuple[str, ...]:
    return (
        f"{found.rows:,}",
        f"{found.accuracy:.2%}",
        f"{found.spd:+.3f}",
        f"{found.aaod:.3f}",
        f"{found.eod:+.3f}",
    )


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


def _checkpoints(document: RepairDocument, made: CheckpointRepair) -> Section:
    """Return how often each candidate is right, as it is and under attack, by part."""
    attacks = made.rows[0].choose.kept

    def cells(found: RightUnderAttack) -> tuple[str, ...]:
        kept = (found.kept.get(attack) for attack in attacks)
        return (
            f"{found.inputs:,}",
            f"{found.accuracy:.2%}",
            f"{found.attacked:,}",
            *(number(count, 0) for count in kept),
        )

    figures = ("inputs", "right", "attacked", *attacks)
    teachers = Table(
        title="Checkpoints",
        header=("file", "teaches"),
        rows=[(PurePath(row.file).name, f"{row.taught:,}") for row in made.checkpoints],
        note="Seeds that fit, of which it gives the true label with more confidence than all others"
        " and the model before.",
    )
    return Section(
        id="checkpoints",
        title="Checkpoints",
        words=f"{_TAUGHT} within {made.radius:g} levels.",
        blocks=[
            Sentences([f"{document.seeds}."]),
            *_tables(figures, made.rows, cells),
            _devices(document, figures, made.devices, cells),
            teachers,
        ],
    )


def _accuracy(document: RepairDocument, made: ArchitectureRepair) -> Section:
    """Return the accuracy of each candidate beside the control's, and its cost."""

    def on_device(found: Figures) -> tuple[str, ...]:
        return (
            f"{found.inputs:,}",
            _share(found.right, found.inputs),
            f"{found.deviating:,}",
        )

    said = [
        f"{document.seeds}.",
        f"{made.steps} batches of 128 seeds to fit with for each candidate, at the rate"
        f" {made.rate:g}; no input that chooses or judges, and none of --test, was trained with.",
    ]
    header = ("inputs", "float right", "right", "deviating", "big")
    tables = _tables(header, made.rows, _accuracy_cells)
    devices = _devices(document, ("inputs", "right", "deviating"), made.devices, on_device)
    return Section(
        id="accuracy",
        title="Accuracy",
        words=_ACCURACY,
        blocks=[Sentences(said), *tables, _cost(document), devices],
    )


def _accuracy_cells(found: Accuracy) -> tuple[str, ...]:
    asked = found.compressed.inputs
    return (
        f"{asked:,}",
        _share(found.right, asked),
        _share(found.compressed.right, asked),
        f"{found.compressed.deviating:,}",
        f"{found.compressed.wide_margin:,}",
    )


def _share(right: int | None, asked: int) -> str:
    return f"{(right or 0) / max(1, asked):.2%}"


def _cost(document: RepairDocument) -> Table:
    return Table(
        title="Cost",
        header=("candidate", "time", "bytes", "seconds to make", "set aside"),
        rows=[
            (
                candidate.name,
                ratio_text(candidate.latency_ratio),
                number(candidate.size_bytes, 0),
                f"{candidate.seconds:.0f}",
                candidate.set_aside or "–",
            )
            for candidate in document.candidates
        ],
        note="Time: of an inference, over that of the model before.",
    )


def _blocks(made: ArchitectureRepair) -> Section:
    """Return what localization says of the blocks, and what was found in those that it names."""
    blocks = Table(
        title="Blocks of the original",
        header=("block", "operators", "neurons", "suspicious", "accuracy of a trial"),
        rows=[
            (
                block.name,
                "{}–{}".format(*block.operators),
                f"{block.neurons:,}",
                f"{block.suspicious:,}",
                f"{block.trial:.2%}",
            )
            for block in made.blocks
        ],
        note=f"Suspicious: of the {made.suspects} most suspicious neurons of all blocks. A trial"
        " trains a block alone for a tenth of the batches.",
    )
    found = [
        (row.name, f"{kept.earlier} → {kept.later}", kept.operator, f"{kept.share:.2f}")
        for row in made.rows
        for kept in row.connections
    ]
    return Section(
        id="blocks",
        title="Blocks",
        blocks=[
            Sentences(
                [
                    f"Located by suspicious neurons: {made.located}; by trials: {made.best_trial}.",
                    *_unchanged(made.rows),
                ]
            ),
            blocks,
            Table(
                title="What was found",
                header=("candidate", "features", "operator", "weight"),
                rows=found,
                note="Weight: among the candidates between two features, in the end.",
            ),
        ],
    )


def _unchanged(rows: tuple[ArchitectureRow, ...]) -> Iterator[str]:
    """Yield which candidates have the operators that the original has."""
    for row in rows:
        if row.connections and all(kept.operator == "original" for kept in row.connections):
            yield f"{row.name} kept the operators of the original."
