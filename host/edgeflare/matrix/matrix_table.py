"""The table of a matrix, a row for each kernel set: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgeflare.devices.provenance import Provenance
from edgeflare.matrix.matrix import KernelSetFigures, Matrix
from edgeflare.pages.markdown import markdown_table
from edgeflare.report.arm_lines import taken_nodes
from edgeflare.untrusted_text import for_markdown, printable

_Tell = Callable[[Matrix, KernelSetFigures, Provenance], str]

_COLUMNS: Mapping[str, _Tell] = {
    "runtime": lambda _matrix, _row, told: f"{told.runtime} {told.runtime_version}",
    "kernels": lambda _matrix, row, _told: row.kernels,
    "seeds dev.": lambda _matrix, row, _told: f"{row.deviating_seeds}/{row.seeds}",
    "found": lambda _matrix, row, _told: f"{row.findings}/{row.seeds - row.deviating_seeds}",
    "inputs dev.": lambda matrix, row, _told: f"{row.deviating}/{len(matrix.triggers)}",
    "alone": lambda _matrix, row, _told: str(row.alone),
    "with": lambda _matrix, _row, told: taken_nodes(told),
}
"""How each figure of a kernel set is told, given the provenance of its device."""

_OF_SEARCHES = ("seeds dev.", "found")
_TEXT = ("runtime", "kernels", "with")

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


def print_matrix(console: Console, matrix: Matrix) -> None:
    """Print the table, what it says in words, and a legend."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in _columns(matrix):
        table.add_column(
            name if name in _TEXT else name.replace(" ", "\n"),
            justify="left" if name in _TEXT else "right",
            overflow="fold",
        )
    for row in matrix.rows:
        table.add_row(*(escape(printable(value)) for value in _cells(matrix, row)))
    console.print(table)
    for line in sentences(matrix):
        console.print(f"• {printable(line)}", markup=False, highlight=False, soft_wrap=True)
    console.print(_legend(matrix), style="dim", highlight=False)


def to_markdown(matrix: Matrix) -> str:
    """Return the table, what it says in words, and a legend."""
    columns, rows = _columns(matrix), [_cells(matrix, row) for row in matrix.rows]
    lines = [
        f"# {for_markdown(matrix.pair)}: the kernel sets of a device",
        "",
        markdown_table(columns, rows),
        "",
        *(f"- {for_markdown(line)}" for line in sentences(matrix)),
        "",
        for_markdown(_legend(matrix)),
        "",
    ]
    return "\n".join(lines)


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
    said += [f"{_listed(group)} decide alike on all of {_inputs(total)}" for group in groups]
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


def _columns(matrix: Matrix) -> list[str]:
    searched = matrix.command == "search"
    return [name for name in _COLUMNS if searched or name not in _OF_SEARCHES]


def _cells(matrix: Matrix, row: KernelSetFigures) -> list[str]:
    columns = _columns(matrix)
    if row.provenance is None:
        known = {"kernels": row.kernels, "with": "refused, see below"}
        return [known.get(name, "–") for name in columns]
    return [_COLUMNS[name](matrix, row, row.provenance) for name in columns]


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


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}"
