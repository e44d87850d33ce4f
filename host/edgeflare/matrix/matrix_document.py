"""Searches or a replay on the kernel sets of a device as a document, and how matrices are written.

It is `matrix.json`, schema `edgeflare.matrix/v1`, beside `matrix.md`; docs/matrix.md says what each
figure means.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from edgeflare.core.goal import Find
from edgeflare.matrix.matrix import KernelSetFigures, Matrix
from edgeflare.matrix.matrix_folder import MATRIX_DOCUMENT, MATRIX_TABLE
from edgeflare.pages.markdown import markdown_section
from edgeflare.pages.page import Section
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Count, CountFromOne
from edgeflare_protos import __version__


class MatrixDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.matrix/v1"
):
    """Searches or replays on the kernel sets of a device.

    Attributes:
        edgeflare: version that wrote it.
        command: the command that made the runs.
        pair: name of the pair.
        find: kind of deviations that were looked for.
        compared: the two arms whose decisions are compared.
        kernel_sets: a row for each kernel set.
        inputs: the inputs on which a kernel set deviates, of all runs.
        apart: the pairs that decide differently on an input, and on how many.

    """

    edgeflare: str
    command: Literal["search", "replay"]
    pair: str
    find: Literal["any", "compression", "kernel"]
    compared: tuple[str, str]
    kernel_sets: tuple[KernelSetRow, ...]
    inputs: tuple[DeviatingInput, ...]
    apart: tuple[KernelSetsApart, ...]


class KernelSetRow(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel set; of one that refuses the model there is nothing after the reason.

    Attributes:
        kernels: name of the kernel set.
        device: name of the device with it.
        refused: why it refuses the model; null where it does not.
        runtime: name of the runtime that ran it.
        runtime_version: version of the runtime.
        delegated_nodes: nodes that a delegate took; null where that is not known.
        total_nodes: nodes of the model.
        adapter: what an accelerator computes on; null without.
        arena_bytes: size of the arena; null without.
        run: path of its run directory, relative to this file.
        seeds: seeds that were tried.
        deviating_seeds: seeds that deviate themselves.
        findings: verified findings of its run.
        deviating: number of the inputs below on which it deviates.
        alone: number of the inputs on which it differs from all others, which agree.

    """

    kernels: str
    device: str
    refused: str | None
    runtime: str | UnsetType = UNSET
    runtime_version: str | UnsetType = UNSET
    delegated_nodes: int | UnsetType | None = UNSET
    total_nodes: int | UnsetType | None = UNSET
    adapter: str | UnsetType | None = UNSET
    arena_bytes: int | UnsetType | None = UNSET
    run: str | UnsetType = UNSET
    seeds: Count | UnsetType = UNSET
    deviating_seeds: Count | UnsetType = UNSET
    findings: Count | UnsetType = UNSET
    deviating: Count | UnsetType = UNSET
    alone: Count | UnsetType = UNSET


class DeviatingInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input on which a kernel set deviates.

    Attributes:
        run: the run directory that has it.
        file: path of its file in the run directory.
        seed_id: id of the seed that it came from.
        sha256: SHA-256 of the file.
        deviating: kernel sets by name.
        alone: the kernel set that differs from all others, which agree; null for none.

    """

    run: str
    file: str
    seed_id: Count
    sha256: str
    deviating: tuple[str, ...]
    alone: str | None


class KernelSetsApart(msgspec.Struct, frozen=True, kw_only=True):
    """Two kernel sets that decide differently.

    Attributes:
        kernel_sets: their names.
        inputs: on how many.

    """

    kernel_sets: Annotated[tuple[str, ...], msgspec.Meta(min_length=2, max_length=2)]
    inputs: CountFromOne


def matrix_document(matrix: Matrix) -> MatrixDocument:
    """Return the result of searches or of a replay."""
    first, second = (arm.value for arm in matrix.goal.compared)
    return MatrixDocument(
        edgeflare=__version__,
        command=matrix.command,
        pair=matrix.pair,
        find=_FINDS[matrix.goal.find],
        compared=(first, second),
        kernel_sets=tuple(map(_row, matrix.rows)),
        inputs=tuple(
            DeviatingInput(
                run=trigger.run,
                file=trigger.image,
                seed_id=trigger.seed_id,
                sha256=trigger.sha256,
                deviating=tuple(said.deviating),
                alone=said.alone,
            )
            for trigger, said in zip(matrix.triggers, matrix.agreement, strict=True)
        ),
        apart=tuple(
            KernelSetsApart(kernel_sets=pair, inputs=count)
            for pair, count in sorted(matrix.apart().items())
        ),
    )


_FINDS: dict[Find, Literal["any", "compression", "kernel"]] = {
    Find.ANY: "any",
    Find.COMPRESSION: "compression",
    Find.KERNEL: "kernel",
}


def write_matrix(document: msgspec.Struct, shown: Section, out: Path) -> None:
    """Write `matrix.json` and `matrix.md` into the folder of the runs.

    Args:
        document: any of the three kinds of matrices.
        shown: the same for `matrix.md`.
        out: the folder.

    """
    write_atomically(out / MATRIX_DOCUMENT, json_bytes(msgspec.to_builtins(document)))
    write_atomically(out / MATRIX_TABLE, markdown_section(shown).encode())


def _row(figures: KernelSetFigures) -> KernelSetRow:
    if figures.provenance is None:
        return KernelSetRow(kernels=figures.kernels, device=figures.device, refused=figures.refused)
    said = figures.provenance
    return KernelSetRow(
        kernels=figures.kernels,
        device=figures.device,
        refused=None,
        runtime=said.runtime,
        runtime_version=said.runtime_version,
        delegated_nodes=said.delegated_nodes,
        total_nodes=said.total_nodes,
        adapter=said.adapter,
        arena_bytes=said.arena_bytes,
        run=figures.kernels,
        seeds=figures.seeds,
        deviating_seeds=figures.deviating_seeds,
        findings=figures.findings,
        deviating=figures.deviating,
        alone=figures.alone,
    )
