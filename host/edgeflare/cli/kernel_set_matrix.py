"""A command on each kernel set of a device: each run announced, then one table of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import interruptible
from edgeflare.cli.progress import say
from edgeflare.cli.quiet import result
from edgeflare.cli.run_options import RunFolder
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError
from edgeflare.matrix.cross_evaluation import Open, evaluate_on_each, stored_triggers
from edgeflare.matrix.kernel_set_runs import KernelSetRun, KernelSetRunner, RunStopped
from edgeflare.matrix.matrix import matrix_of
from edgeflare.matrix.matrix_document import matrix_document, write_matrix
from edgeflare.matrix.matrix_table import matrix_section
from edgeflare.pages.terminal import print_section
from edgeflare.run.run_document import RunDocument
from edgeflare.trust import Trust


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

    Raises:
        UserError, InfrastructureError: see `KernelSetRunner.run`.

    """
    for one in runner.look(look):
        if one.refused:
            say(Console(), f"{one.profile.name}: {one.refused}")
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
        InfrastructureError: a device or a worker process is lost for good.

    """
    out = runner.out

    def unless_stopped(profile: Profile, path: Path) -> RunDocument:
        document = run(profile, path)
        if document.stopped_by in INTERRUPTED_BY:
            raise RunStopped
        return document

    def compared(runs: list[KernelSetRun[RunDocument]]) -> list[KernelSetRun[RunDocument]]:
        taking = [one.profile for one in runs if not one.refused]
        triggers = stored_triggers({one.kernels: out / one.kernels for one in taking})
        with interruptible("awaiting the inputs under way") as interrupt:
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
