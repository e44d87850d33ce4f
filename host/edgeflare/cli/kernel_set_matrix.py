"""A command on each kernel set of a device: each run announced, then one table of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import interruptible_once
from edgeflare.cli.quiet import result
from edgeflare.cli.run_options import RunFolder
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Provenance
from edgeflare.errors import InfrastructureError
from edgeflare.matrix.kernel_set_runs import KernelSetRun, KernelSetRunner, RunStopped
from edgeflare.matrix.matrix import (
    KernelSetFigures,
    Matrix,
    Open,
    evaluate_on_each,
    matrix_of,
    stored_triggers,
)
from edgeflare.matrix.matrix_document import matrix_document, write_matrix
from edgeflare.pages.page import Bullets, Section, Table
from edgeflare.pages.terminal import print_section
from edgeflare.progress import say
from edgeflare.report.arm_lines import taken_nodes
from edgeflare.run.run_document import RunDocument
from edgeflare.trust import Trust

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


def kernel_set_runner(device: str, trust: Trust, out: Path, folder: RunFolder) -> KernelSetRunner:
    """Return what runs a command on each kernel set of a device, and says which one begins.

    Args:
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        out: the folder of the runs.
        folder: whether they begin anew, replace what is there or go on.

    """
    console = Console(stderr=True)
    resume, overwrite = folder.resume, folder.overwrite
    return KernelSetRunner(device, trust, out, lambda line: say(console, line), resume, overwrite)


def try_kernel_sets(runner: KernelSetRunner, look: Callable[[Profile, Path], None]) -> int:
    """Say of each kernel set of a device what a command would do there, and return the exit code.

    Args:
        runner: what would run it.
        look: opens what a run would open, and prints what it would do.

    """
    for run in runner.look(look):
        if run.refused:
            say(Console(), f"{run.profile.name}: {run.refused}")
    return 0


def compare_kernel_sets(
    command: Literal["search", "replay"],
    runner: KernelSetRunner,
    run: Callable[[Profile, Path], RunDocument],
    opened_on: Open,
) -> list[KernelSetRun[RunDocument]] | None:
    """Run a command on each kernel set, evaluate what was stored on all; write and print that.

    Args:
        command: the command.
        runner: what runs it.
        run: runs it on one kernel set, in a run directory; its progress is shown.
        opened_on: opens the pair on a device.

    Returns:
        The runs; None where the user stopped it.

    Raises:
        UserError: all kernel sets refuse the model, or as the run raises it.

    """
    out = runner.out

    def unless_stopped(profile: Profile, path: Path) -> RunDocument:
        document = run(profile, path)
        if document.stopped_by in INTERRUPTED_BY:
            raise RunStopped
        return document

    def compared(runs: list[KernelSetRun[RunDocument]]) -> list[KernelSetRun[RunDocument]]:
        taking = [kernel_set_run.profile for kernel_set_run in runs if not kernel_set_run.refused]
        triggers = stored_triggers({taken.kernels: out / taken.kernels for taken in taking})
        with interruptible_once("awaiting the inputs under way") as interrupt:
            try:
                outcomes = evaluate_on_each(taking, triggers, opened_on, interrupt.asked)
            except InfrastructureError as error:
                raise InfrastructureError(f"{error}; {runner.goes_on}") from error
        if outcomes is None:
            raise RunStopped
        matrix = matrix_of(command, runs, triggers, outcomes)
        shown = matrix_section(matrix)
        write_matrix(matrix_document(matrix), shown, out)
        print_section(Console(), shown)
        say(Console(), f"Each kernel set has a run of its own, such as {out / taking[0].kernels}")
        result(out)
        return runs

    return runner.run(unless_stopped, compared)


def matrix_section(matrix: Matrix) -> Section:
    """Return the table, and what it says in words."""
    columns = [name for name in _COLUMNS if matrix.command == "search" or name not in _OF_SEARCHES]
    first, second = (arm.value for arm in matrix.goal.compared)
    legend = _SEARCHED + _LEGEND if matrix.command == "search" else _LEGEND
    table = Table(
        title="",
        header=columns,
        rows=[_cells(matrix, row, columns) for row in matrix.rows],
        note=legend.format(
            compared=f"{first} and {second}",
            inputs=_inputs(len(matrix.triggers)),
            ties="" if matrix.goal.ties else _TIES,
        ),
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
            group
            for group in groups
            if all((kernels, row.kernels) not in apart for kernels in group)
        )
        group = next(joined, None)
        if group is None:
            groups.append([row.kernels])
        else:
            group.append(row.kernels)
    return groups


def _inputs(count: int) -> str:
    return f"{count} input{'s' * (count != 1)}"
