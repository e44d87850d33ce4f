"""A command on each kernel set of a device: each run announced, then one table of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import interruptible
from edgeflare.cli.progress import say
from edgeflare.cli.quiet import result
from edgeflare.devices.device_check import kernel_set_devices
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.matrix.cross_evaluation import Open, evaluate_on_each, stored_triggers
from edgeflare.matrix.kernel_set_runs import KernelSetRun, RunStopped, run_on_each
from edgeflare.matrix.matrix import matrix_of
from edgeflare.matrix.matrix_document import matrix_document, write_matrix
from edgeflare.matrix.matrix_folder import remove_other_runs, remove_tables
from edgeflare.matrix.matrix_table import matrix_section
from edgeflare.pages.terminal import print_section
from edgeflare.run.run_document import RunDocument
from edgeflare.trust import Trust

Result = TypeVar("Result")


def run_kernel_sets(
    device: str,
    trust: Trust,
    out: Path,
    run: Callable[[Profile, Path], Result],
    *,
    overwrite: bool,
) -> list[KernelSetRun[Result]]:
    """Run a command on each kernel set that a device offers, and say which one begins.

    Args:
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        out: the folder of the runs.
        run: runs it on one kernel set, in a run directory; its progress is shown.
        overwrite: replace the runs that are there.

    Raises:
        RunStopped: as the run raises it.
        UserError: all kernel sets refuse the model, or as the run raises it.
        InfrastructureError: the device does not come up, or as the run raises it.

    """
    console = Console(stderr=True)
    profiles = kernel_set_devices(device, trust)
    counted = iter(range(1, len(profiles) + 1))

    def announced(profile: Profile) -> Result:
        say(console, f"kernel set {next(counted)} of {len(profiles)}: {profile.name}")
        try:
            done = run(profile, out / profile.kernels)
        except UserError:
            raise  # what cannot be done as it was asked for costs no earlier matrix
        except BaseException:
            remove_tables(out)
            raise
        remove_tables(out)
        return done

    runs = run_on_each(profiles, announced)
    if overwrite:
        remove_other_runs(out, {one.profile.kernels for one in runs if not one.refused})
    return runs


def try_kernel_sets(
    device: str, trust: Trust, out: Path, look: Callable[[Profile, Path], None]
) -> None:
    """Say of each kernel set of a device what a command would do there; nothing is written.

    Args:
        device: a name with all kernel sets.
        trust: the user's decision on its profile.
        out: the folder that the runs would have.
        look: opens what a run would open, and prints what it would do.

    Raises:
        UserError, InfrastructureError: see `run_kernel_sets`.

    """
    for one in run_on_each(
        kernel_set_devices(device, trust), lambda profile: look(profile, out / profile.kernels)
    ):
        if one.refused:
            say(Console(), f"{one.profile.name}: {one.refused}")


def compare_kernel_sets(
    command: Literal["search", "replay"],
    runs: Sequence[KernelSetRun[RunDocument]],
    out: Path,
    opened_on: Open,
) -> None:
    """Evaluate what runs have stored on all kernel sets; write and print what that comes to.

    Args:
        command: command that made the runs, "search" or "replay".
        runs: as `run_kernel_sets` returns them.
        out: the folder of the runs.
        opened_on: opens the pair on a device.

    Raises:
        RunStopped: the user stopped it.
        InfrastructureError: a device or a worker process is lost for good.

    """
    taking = [one.profile for one in runs if not one.refused]
    triggers = stored_triggers({one.kernels: out / one.kernels for one in taking})
    with interruptible("awaiting the inputs under way") as interrupt:
        try:
            outcomes = evaluate_on_each(taking, triggers, opened_on, interrupt.asked)
        except InfrastructureError as error:
            raise InfrastructureError(f"{error}; {_going_on(out)}") from error
    if outcomes is None:
        raise RunStopped
    matrix = matrix_of(command, runs, triggers, outcomes)
    shown = matrix_section(matrix)
    write_matrix(matrix_document(matrix), shown, out)
    print_section(Console(), shown)
    say(Console(), f"Each kernel set has a run of its own, such as {out / taking[0].kernels}")
    result(out)


@contextmanager
def stopping_said(out: Path) -> Iterator[None]:
    """Say how to go on where the user stops a matrix.

    Raises:
        RunStopped: as it comes from within.

    """
    try:
        yield
    except RunStopped:
        say(Console(stderr=True), f"stopped; {_going_on(out)}")
        raise


def _going_on(out: Path) -> str:
    return f"the same command with --out {out} --resume goes on"
