"""A matrix as it is shown: a row for each kernel set, and what they say in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from edgeflare.devices.provenance import Provenance
from edgeflare.matrix.matrix import KernelSetFigures, Matrix
from edgeflare.pages.page import Bullets, Section, Table
from edgeflare.report.arm_lines import taken_nodes

_Tell = Callable[[Matrix, KernelSetFigures, Provenance], str]

_COLUMNS: Mapping[str, _Tell] = {
    "kernels": lambda _matrix, row, _told: row.kernels,
    "runtime": lambda _matrix, _row, told: f"{told.runtime} {told.runtime_version}",
    "with": lambda _matrix, _row, told: taken_nodes(told),
    "seeds dev.": lambda _matrix, row, _told: f"{row.deviating_seeds}/{row.seeds}",
    "found": lambda _matrix, row, _told: f"{row.findings}/{row.seeds - row.deviating_seeds}",
    "inputs dev.": lambda matrix, row, _told: f"{row.deviating}/{len(matrix.triggers)}",
    "alone": lambda _matrix, row, _told: str(row.alone),
}
"""How each figure of a kernel set is told, given the provenance of its device."""

_OF_SEARCHES = ("seeds dev.", "found")

_SEARCHED = (
    "Seeds dev.: seeds on which {compared} decide differently. Found: searches from the others that"
    " ended in such an input. "
)
_LEGEND = (
    "Inputs dev.: of {inputs} that were found with any kernel set, those on which"
    " {compared} decide differently. Alone: those on which this kernel set decides otherwise than"
    " all others, and they alike.{ties}"
)

_TIES = (
    " Two that differ by a tie alone on a mutant decide alike, since there ties are no deviations"
    " (--ties include);"
    " so of two that are called alike one may deviate."
)


def matrix_section(matrix: Matrix) -> Section:
    """Return the table, and what it says in words."""
    columns = [name for name in _COLUMNS if matrix.command == "search" or name not in _OF_SEARCHES]
    table = Table(
        title="",
        header=columns,
        rows=[_cells(matrix, row, columns) for row in matrix.rows],
        note=_legend(matrix),
        numbers_from=3,
        missed_least=("runtime", "with"),
    )
    return Section(
        id="matrix",
        title=f"{matrix.pair}: the kernel sets of a device",
        blocks=[table, Bullets(sentences(matrix))],
    )


def _cells(matrix: Matrix, row: KernelSetFigures, columns: Sequence[str]) -> list[str]:
    if row.provenance is None:
        known = {"kernels": row.kernels, "with": "refused, see below"}
        return [known.get(name, "–") for name in columns]
    return [_COLUMNS[name](matrix, row, row.provenance) for name in columns]


def sentences(matrix: Matrix) -> list[str]:
    """Return what the matrix says: who stands alone, and which kernel sets always agree."""
    total = len(matrix.triggers)
    refused = [f"{row.kernels} refused: {row.refused}" for row in matrix.rows if row.refused]
    if not total:
        return ["no kernel set deviates on any input that was found", *refused]
    said = [
        f"{row.kernels} stands alone on {row.alone} of {_inputs(total)}: all others decide alike"
        " there"
        for row in sorted(matrix.rows, key=lambda row: -row.alone)
        if row.alone
    ]
    groups = [group for group in _alike(matrix) if len(group) > 1]
    said += [
        f"{', '.join(most)} and {last} decide alike on all of {_inputs(total)}"
        for *most, last in groups
    ]
    return [*said, *refused]


def _alike(matrix: Matrix) -> list[list[str]]:
    """Return the kernel sets in groups of which all decide alike on all inputs."""
    apart = matrix.apart()
    groups: list[list[str]] = []
    for row in matrix.rows:
        if row.refused:
            continue
        joined = (
            group for group in groups if all((one, row.kernels) not in apart for one in group)
        )
        group = next(joined, None)
        if group is None:
            groups.append([row.kernels])
        else:
            group.append(row.kernels)
    return groups


def _legend(matrix: Matrix) -> str:
    first, second = (arm.value for arm in matrix.goal.compared)
    legend = _SEARCHED + _LEGEND if matrix.command == "search" else _LEGEND
    return legend.format(
        compared=f"{first} and {second}",
        inputs=_inputs(len(matrix.triggers)),
        ties="" if matrix.goal.ties else _TIES,
    )


def _inputs(count: int) -> str:
    return f"{count} input{'s' * (count != 1)}"
