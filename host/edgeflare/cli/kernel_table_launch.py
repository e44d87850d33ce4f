"""`edgeflare conform --matrix`: kernel sets and versions on operators and types, as a table."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import msgspec
import typer

from edgeflare.cli.conform_options import DEFAULT_SECONDS
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, as_ctrl_c, stopped_by
from edgeflare.cli.progress import say
from edgeflare.cli.quiet import result
from edgeflare.cli.run_options import RunFolder
from edgeflare.cli.version_launch import installed
from edgeflare.conform.conformance_arms import open_conformance
from edgeflare.conform.drafts.cells import Cell, chosen_cells
from edgeflare.conform.execution.model_opener import HOST_KERNELS
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
from edgeflare.conform.runtime_arms import runtime_arms
from edgeflare.devices.device_check import kernel_set_devices
from edgeflare.devices.profile import EMULATED_ALL, Profile
from edgeflare.errors import EdgeFlareError, InfrastructureError
from edgeflare.models.run_host import describe_host
from edgeflare.models.runtime_versions import installed_version
from edgeflare.pages.markdown import markdown_section
from edgeflare.pages.terminal import print_section
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.run_directory import RunDirectory


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
    path = folder.out or Path("runs") / f"kernels-{datetime.now():%Y%m%d-%H%M%S}"
    RunDirectory.check(path, overwrite=folder.overwrite)
    console, begun = Console(stderr=True), time.monotonic()
    if models is None and seconds is None:
        seconds = DEFAULT_SECONDS
    most = models or MODELS_PER_CELL * len(cells)
    with as_ctrl_c(), ExitStack() as stack:
        arms = _arms(versions, stack, console)
        status = stack.enter_context(console.status("drawing models"))

        def over(done: int) -> bool:
            status.update(f"{done:,} of {most:,} models on {len(arms)} kernel sets")
            return seconds is not None and time.monotonic() - begun > seconds

        command = _command(cells, most, rng_seed, versions)
        soc = describe_host(None).soc
        table, stop = kernel_table(cells, most, rng_seed, arms, over, command, soc)
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
    """Return the command that makes a table of so many models, whatever its limit of time was."""
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
                runtime=f"{arm.runtime.package} {arm.runtime.version}",
            ),
            arm.arm,
        )
        for arm in stack.enter_context(runtime_arms(runtimes))
    ]
    for profile in kernel_set_devices(EMULATED_ALL):
        if profile.kernels in HOST_KERNELS:
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
            runtime=f"{told.runtime} {told.runtime_version}",
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
