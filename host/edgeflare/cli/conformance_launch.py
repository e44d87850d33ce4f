"""A conformance run as it was asked for on the command line: on one device, or on each kernel set.

With `--device NAME/all` there is a run on each kernel set of a device, and two tables. `--matrix`
makes a table of kernel sets and versions on operators and types.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import typer
from rich.markup import escape

from edgeflare.cli.conform_options import DEFAULT_SECONDS
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import (
    INTERRUPTED,
    as_ctrl_c,
    interrupt_error,
    interruptible_once,
    stopped_by,
)
from edgeflare.cli.kernel_set_matrix import kernel_set_runner, try_kernel_sets
from edgeflare.cli.quiet import result
from edgeflare.cli.run_options import RunFolder, matrix_path, of_kernel_set
from edgeflare.cli.version_launch import installed
from edgeflare.conform.conform_run import ConformanceRun, run_conformance
from edgeflare.conform.conformance_arms import OpenedConformance, open_conformance
from edgeflare.conform.drafts.cells import Cell, chosen_cells
from edgeflare.conform.drafts.model_reading import ModelReading
from edgeflare.conform.execution.model_opener import HOST_KERNELS
from edgeflare.conform.findings.accepted_findings import AcceptedFinding
from edgeflare.conform.findings.known_issues import KnownIssue
from edgeflare.conform.kernel_table import (
    KERNELS_CSV,
    KERNELS_DOCUMENT,
    KERNELS_PAGE,
    MODELS_PER_CELL,
    KernelColumn,
    KernelTable,
    TableArm,
    kernel_table,
    table_csv,
    table_sections,
)
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.presentation.conform_terminal import look_lines
from edgeflare.conform.record.conform_document import (
    ConformDocument,
    ModelCoverage,
    read_conformance,
)
from edgeflare.conform.record.conform_header import ConformHeader, ConformRequest
from edgeflare.conform.record.conform_journal import begin_journal, require_same_run, resume_journal
from edgeflare.conform.runtime_arms import COMPILED_KERNELS, runtime_arms_together
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.device_check import kernel_set_devices
from edgeflare.devices.profile import EMULATED_ALL, Profile
from edgeflare.errors import EdgeFlareError, InfrastructureError
from edgeflare.matrix.conform_matrix import (
    ConformMatrix,
    conform_matrix,
    conform_matrix_document,
    conform_matrix_section,
)
from edgeflare.matrix.kernel_set_runs import KernelSetRun, RunStopped
from edgeflare.matrix.matrix_document import write_matrix
from edgeflare.models.run_host import describe_host
from edgeflare.models.runtime_versions import installed_version
from edgeflare.pages.markdown import markdown_section
from edgeflare.pages.terminal import print_section
from edgeflare.progress import observe, say
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import new_folder
from edgeflare.run.run_directory import CONFORM_DOCUMENT, RunDirectory
from edgeflare.trust import Trust
from edgeflare.untrusted_text import printable


@dataclass(frozen=True, slots=True)
class RequestedConformance:
    """A conformance run that was asked for.

    Attributes:
        request: what is drawn.
        model: what is known of the model that the user named; None for none.
        reading: operators of that model; None for none.
        accepted: findings that do not count.
        issues: what the world knows of faults.
        folder: whether the run begins anew, replaces one or goes on.
        seeds: what the model is given on seeds of its pair, (seeds, *shape); None of none.

    """

    request: ConformRequest
    model: ModelCoverage | None
    reading: ModelReading | None
    accepted: Sequence[AcceptedFinding]
    issues: Sequence[KnownIssue]
    folder: RunFolder
    seeds: Values | None = None


def run_requested_conformance(
    asked: RequestedConformance, profile: Profile, path: Path, resumed_at: Path
) -> ConformDocument:
    """Run it, its progress shown, and return its document.

    Args:
        asked: the run.
        profile: the device.
        path: the run directory.
        resumed_at: what the user names to go on with it.

    """
    console = Console(stderr=True)
    interrupt = Interrupt()
    with ExitStack() as stack:
        opened = _opened(profile, stack, console, interrupt)
        stack.enter_context(interruptible_once("awaiting the round under way", interrupt))
        header = opened.header(asked.request)
        if asked.folder.resume:
            journal = resume_journal(path, header)
        else:
            journal = begin_journal(path, header, overwrite=asked.folder.overwrite)
        stack.callback(journal.close)
        run = ConformanceRun(
            header,
            RunDirectory(path),
            journal,
            asked.model,
            asked.reading,
            asked.accepted,
            asked.issues,
            asked.seeds,
        )
        try:
            with observe(console) as observer:
                return run_conformance(run, opened.arms, observer, interrupt.asked_by)
        except (InfrastructureError, OSError) as error:
            if interrupt.asked():
                raise interrupt_error(interrupt.by) from error
            raise InfrastructureError(
                f"{error}; the same command with --out {resumed_at} --resume goes on"
            ) from error


def requested_header(asked: RequestedConformance, profile: Profile) -> ConformHeader:
    """Open the device, and return what run it would be."""
    with ExitStack() as stack:
        return _opened(profile, stack, Console(stderr=True), Interrupt()).header(asked.request)


def try_conformance(asked: RequestedConformance, profile: Profile, path: Path) -> None:
    """Open the device, and print what a run would do; nothing is written."""
    with ExitStack() as stack:
        opened = _opened(profile, stack, Console(stderr=True), Interrupt())
        header = opened.header(asked.request)
        if asked.folder.resume:
            require_same_run(path, header)
        for line in look_lines(header, asked.model, asked.folder.planned(path)):
            Console().print(line, markup=False, highlight=False, soft_wrap=True)


def conform_kernel_sets(
    asked: RequestedConformance, device: str, trust: Trust, *, dry_run: bool, as_json: bool
) -> int:
    """Run it on each kernel set of a device, and return the exit code.

    Args:
        asked: the run; its time is that of each kernel set.
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        dry_run: only say what would be done.
        as_json: print the document, and no table.

    """
    out = matrix_path(asked.folder, "conform")
    runner = kernel_set_runner(device, trust, out, asked.folder)

    def own(path: Path) -> RequestedConformance:
        return replace(asked, folder=of_kernel_set(asked.folder, path))

    if dry_run:
        return try_kernel_sets(
            runner, lambda kernels, path: try_conformance(own(path), kernels, path)
        )

    def conform_on(profile: Profile, path: Path) -> ConformDocument:
        if asked.folder.resume and (ended := _ended(asked, profile, path)) is not None:
            return ended
        done = run_requested_conformance(own(path), profile, path, resumed_at=out)
        if done.interrupted_by is not None:
            raise RunStopped
        return done

    def written(runs: Sequence[KernelSetRun[ConformDocument]]) -> ConformMatrix:
        matrix = conform_matrix(runs)
        write_matrix(conform_matrix_document(matrix), conform_matrix_section(matrix), out)
        return matrix

    matrix = runner.run(conform_on, written)
    if matrix is None:
        return INTERRUPTED
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(conform_matrix_document(matrix)), indent=1))
    else:
        print_section(Console(), conform_matrix_section(matrix))
        say(
            Console(),
            f"Each kernel set has a run of its own, such as {out / matrix.rows[0].kernels}",
        )
    result(out)
    return int(any(row.new for row in matrix.rows))


def _opened(
    profile: Profile, stack: ExitStack, console: Console, interrupt: Interrupt
) -> OpenedConformance:
    with console.status(f"opening {escape(printable(profile.name))}"):
        return open_conformance(profile, stack, interrupt.asked)


def _ended(asked: RequestedConformance, profile: Profile, path: Path) -> ConformDocument | None:
    """Return the document of the same run if it has ended: what it shrank would be lost else.

    Raises:
        UserError: it is a run of a device or a host that may answer otherwise.

    """
    directory = RunDirectory(path)
    if not (path / CONFORM_DOCUMENT).exists():
        return None
    document = read_conformance(directory)
    if document.plan != asked.request or document.interrupted_by is not None:
        return None
    require_same_run(path, requested_header(asked, profile))
    return document


def tabulate_kernels(
    cells: tuple[Cell, ...],
    models: int | None,
    seconds: float | None,
    rng_seed: int,
    versions: str | None,
    folder: RunFolder,
    *,
    as_json: bool,
) -> int:
    """Run drawn models on each kernel set of this host and of versions; write and print the table.

    Args:
        cells: operators and types.
        models: how many are drawn; None for some of each.
        seconds: how long at most, a round that has begun left out; None for no limit, and for ten
            minutes where no number of models is given.
        rng_seed: the run seed.
        versions: released versions of the runtime, as the option has them; None for the host's own.
        folder: where to write it.
        as_json: print the document, and no table.

    Returns:
        The exit code: 0; 130 or 3 for a table that Ctrl-C or a lost process ended, and which has
        what ran until then.

    Raises:
        UserError: the folder holds something else, or no version can be installed.
        InfrastructureError: pip fails, or a process or a disk.

    """
    path = folder.out or new_folder("kernels")
    RunDirectory.check(path, overwrite=folder.overwrite)
    console, begun = Console(stderr=True), time.monotonic()
    if models is None and seconds is None:
        seconds = DEFAULT_SECONDS
    most = models or MODELS_PER_CELL * len(cells)
    with as_ctrl_c(), ExitStack() as stack:
        arms = _arms(versions, stack, console)
        display = stack.enter_context(observe(console))
        runs = most * len(arms)
        name = f"models on {len(arms)} kernel sets"
        table, stop = kernel_table(
            cells,
            most,
            rng_seed,
            arms,
            over=lambda: seconds is not None and time.monotonic() - begun > seconds,
            tried=lambda done: display.worked(name, done, runs),
            command=lambda ran: _command(cells, ran, rng_seed, versions),
            machine=describe_host(None).soc,
        )
    claimed, lock = RunDirectory.claim(path, overwrite=folder.overwrite)
    try:
        _write(table, claimed.path)
    finally:
        os.close(lock)
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(table), indent=1))
    else:
        print_section(Console(), table_sections(table)[0])
        say(
            Console(), f"Everything is in {path}: {KERNELS_CSV}, {KERNELS_DOCUMENT}, {KERNELS_PAGE}"
        )
    result(path)
    if stop is None:
        return 0
    by_user = isinstance(stop, KeyboardInterrupt)
    why = f"stopped by {stopped_by(stop)}" if by_user else str(stop)
    say(console, f"{why}: the table has the {table.models:,} models that ran until then")
    return INTERRUPTED if by_user else InfrastructureError.exit_code


def _command(cells: Sequence[Cell], models: int, rng_seed: int, versions: str | None) -> str:
    """Return the command that makes a table of so many models."""
    some = set(cells) != set(chosen_cells())
    operators = ",".join(dict.fromkeys(operator for operator, _ in cells))
    types = ",".join(dict.fromkeys(type_ for _, type_ in cells))
    parts = [
        "edgeflare conform --matrix",
        f"--ops {operators} --dtype {types}" if some else "",
        f"--versions {versions}" if versions else "",
        f"--models {models} --rng-seed {rng_seed}",
    ]
    return " ".join(filter(None, parts))


def _arms(versions: str | None, stack: ExitStack, console: Console) -> list[TableArm]:
    """Return the kernel sets of TFLite's interpreter in each version, then the host's others."""
    runtimes = installed(versions or installed_version()[1])
    arms = [
        TableArm(
            KernelColumn(
                name=arm.name,
                kernels=arm.kernels,
                runtime=arm.runtime.package,
                runtime_version=arm.runtime.version,
            ),
            arm.arm,
        )
        for arm in stack.enter_context(
            runtime_arms_together(
                runtimes, (*HOST_KERNELS, *COMPILED_KERNELS), lambda line: say(console, line)
            )
        )
    ]
    there = {arm.column.kernels for arm in arms}
    for profile in kernel_set_devices(EMULATED_ALL):
        if profile.kernels in there:
            continue
        try:
            arms.append(_device_arm(profile, stack))
        except EdgeFlareError as error:
            say(console, f"{profile.name}: {error}")
    return arms


def _device_arm(profile: Profile, stack: ExitStack) -> TableArm:
    opened = open_conformance(profile, stack, lambda: False)
    told = opened.provenance
    return TableArm(
        KernelColumn(
            name=f"{profile.kernels}@{told.runtime_version}",
            kernels=profile.kernels,
            runtime=told.runtime,
            runtime_version=told.runtime_version,
        ),
        opened.arms[0],
    )


def _write(table: KernelTable, folder: Path) -> None:
    parts = [markdown_section(section) for section in table_sections(table)]
    begin = f"# Operators on kernel sets\n\n```bash\n{table.command}\n```\n"
    page = "\n".join([begin, *parts])
    content = json.dumps(msgspec.to_builtins(table), ensure_ascii=False, separators=(",", ":"))
    write_atomically(folder / KERNELS_DOCUMENT, f"{content}\n".encode())
    write_atomically(folder / KERNELS_CSV, table_csv(table).encode())
    write_atomically(folder / KERNELS_PAGE, page.encode())
