"""The sections of a repair's page that `archrepair` fills: accuracy, and the blocks it located."""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.pages.page import Section, Sentences, Table
from edgeflare.repair.labelled_details import (
    Accuracy,
    ArchitectureRepair,
    ArchitectureRow,
)
from edgeflare.repair.page.method_sections import part_tables, ratio_text
from edgeflare.repair.repair_document import RepairDocument

_WORDS = (
    "Each row is a float model and its compressed form. An input deviates where the two decide"
    " differently. plain is the control: everything is fine-tuned, with as many batches and without"
    " a search. It is taken unless another one is right on surely more of the seeds that choose."
)

_SETS = {
    "choose": "On the seeds that choose",
    "judge": "On the seeds that judge",
    "fresh": "On fresh inputs",
}


def architecture_sections(document: RepairDocument, made: ArchitectureRepair) -> Iterator[Section]:
    """Yield the accuracy of each candidate beside the control's, its cost, and the blocks."""
    header = ("model", "inputs", "float right", "right", "deviating", "big")
    tables = part_tables(_SETS, header, made.rows, _cells)
    devices = Table(
        title=f"{document.chosen} on the devices, on the seeds that judge",
        header=("device", "inputs", "right", "deviating"),
        rows=[
            (
                on_device.device,
                f"{on_device.judge.asked:,}",
                _share(on_device.judge.right, on_device.judge.asked),
                f"{on_device.judge.deviating:,}",
            )
            for on_device in made.devices
        ],
    )
    said = [
        f"{document.seeds}.",
        f"{made.steps} batches of 128 seeds to fit with for each candidate, at the rate"
        f" {made.rate:g}; no input that chooses or judges, and none of --test, was trained with.",
    ]
    yield Section(
        id="accuracy",
        title="Accuracy",
        words=_WORDS,
        blocks=[Sentences(said), *tables, _cost(document), devices],
    )
    yield _blocks(made)


def _cells(found: Accuracy) -> tuple[str, ...]:
    asked = found.compressed.asked
    return (
        f"{asked:,}",
        _share(found.right, asked),
        _share(found.compressed.right, asked),
        f"{found.compressed.deviating:,}",
        f"{found.compressed.big:,}",
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
                "–" if candidate.bytes is None else f"{candidate.bytes:,}",
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
