"""Command-line options that commands on runs share, and how a group of them is one parameter.

They are about the run directory, the exit code, the models of a run, and what the user trusts; and
about a device that is named with all its kernel sets, whose runs have a folder of their own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from edgeflare.cli.option_values import complete_run, require_finite, require_one_of
from edgeflare.devices.profile import names_all
from edgeflare.errors import UserError
from edgeflare.record.folder import new_folder
from edgeflare.run.begin_or_resume import begin_run, require_resumable, resume_run
from edgeflare.run.gate import FAIL_ON
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import OtherHostError, RunHeader
from edgeflare.run.run_journal import RunJournal

_RUN = "The run"


Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The run directory, absent or empty. By default a new folder in runs/.",
        rich_help_panel=_RUN,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the run in --out.", rich_help_panel=_RUN)
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run in --out.", rich_help_panel=_RUN)
]
AllowOtherHost = Annotated[
    bool,
    typer.Option(
        "--allow-other-host",
        help="Go on with a run of a host with another processor or runtime, which may answer "
        "differently; the run says so.",
        rich_help_panel=_RUN,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Open the models and the device, say what would be done, write nothing.",
        rich_help_panel=_RUN,
    ),
]
FailOnWhat = Annotated[
    str,
    typer.Option(
        "--fail-on",
        callback=require_one_of(list(FAIL_ON)),
        autocompletion=lambda: list(FAIL_ON),
        metavar=f"<{'|'.join(FAIL_ON)}>",
        help="Which deviations make the exit code 1. "
        + " ".join(
            f"{name}: {condition.words}." for name, condition in FAIL_ON.items() if condition.words
        ),
        rich_help_panel=_RUN,
    ),
]
Allow = Annotated[
    float,
    typer.Option(
        callback=require_finite,
        min=0.0,
        max=1.0,
        metavar="RATE",
        help="Share of the seeds that may have a deviation before the exit code is 1.",
        rich_help_panel=_RUN,
    ),
]
Versions = Annotated[
    str | None,
    typer.Option(
        "--versions",
        metavar="VERSIONS",
        help="Of a conformance run: try each finding on the kernel sets of these released versions"
        " of the runtime, which pip installs once, and say since which it shows: 2.1.6,2.2.0, or"
        " all, which is the last of each minor version.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Trust what needs it: a Python function that a pair.toml names, a profile in "
        "./device_profiles that starts a program or names an address. Kept until the files change.",
        rich_help_panel=_RUN,
    ),
]

FoundRun = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="The run directory of a search or a survey.",
        autocompletion=complete_run,
    ),
]
Original = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Where the original model is now, if it was moved; or the Python function that it is, "
        "which is not imported because a run names it, but where you agreed to its code before.",
    ),
]
Compressed = Annotated[
    Path | None,
    typer.Option(metavar="MODEL", help="Where the compressed model is now, if it was moved."),
]
Functions = Annotated[
    list[str] | None,
    typer.Option(
        "--function",
        metavar="MODULE:FUNCTION",
        help="A Python function that RUN's pair has for features or post-processing. It is not"
        " imported because a run names it, but where you agreed to its code before; again for each"
        " further one.",
    ),
]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where the run lies, and whether it begins anew, replaces one or goes on."""

    out: Out = None
    overwrite: Overwrite = False
    resume: Resume = False

    def require_one_way(self) -> None:
        """Refuse options that contradict each other."""
        if self.resume and self.out is None:
            raise UserError("--resume has to know which run: add --out RUN")
        if self.resume and self.overwrite:
            raise UserError(
                "--resume goes on with a run and --overwrite replaces it: give one of them"
            )

    def choose(self, name: str) -> Path:
        """Return the path of the run directory: by default a new folder in runs/ of that name.

        Raises:
            UserError: a run that begins must not be written there.

        """
        path = self.out or new_folder(name)
        if not self.resume:
            RunDirectory.check(path, overwrite=self.overwrite)
        return path

    def planned(self, path: Path) -> str:
        """Return what would be done with the run directory, in words."""
        return f"go on with {path}" if self.resume else f"write {path}"


@dataclass(frozen=True, slots=True)
class MovableRunFolder(RunFolder):
    """Where a run lies, and how it begins, if another host may go on with it."""

    allow_other_host: AllowOtherHost = False

    def begin_or_resume(
        self, path: Path, header: RunHeader, seeds: int, require: Callable[[RunJournal], None]
    ) -> tuple[RunDirectory, RunJournal]:
        """Begin the run, or go on with it; see `begin_run` and `resume_run`."""
        if not self.resume:
            return begin_run(path, header, seeds, overwrite=self.overwrite)
        with naming_other_host():
            return resume_run(path, header, require, allow_other_host=self.allow_other_host)

    def require_resumable(
        self, path: Path, header: RunHeader, require: Callable[[RunJournal], None]
    ) -> None:
        """Refuse what `begin_or_resume` would refuse to go on with, and write nothing."""
        if self.resume:
            with naming_other_host():
                require_resumable(path, header, require, allow_other_host=self.allow_other_host)


@contextmanager
def naming_other_host() -> Iterator[None]:
    """Name the option that goes on all the same, where a run is refused for its host.

    Raises:
        UserError: it is refused.

    """
    try:
        yield
    except OtherHostError as refused:
        raise UserError(f"{refused}, or add --allow-other-host, and the run says so") from None


def with_option_groups(command: Callable[..., int]) -> Callable[..., int]:
    """Let a command take dataclasses of options; Typer sees each field as an option of its own.

    The options stand where the dataclass stood, so their order in `--help` is that of the fields.
    Each parameter of the command is passed by name.

    Args:
        command: a command, some of whose parameters are annotated with a dataclass. Each field of
            that is annotated as an option is, and has a default.

    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def run(**options: Any) -> int:
        for name, group in groups.items():
            values = {field.name: options.pop(field.name) for field in fields(group)}
            options[name] = group(**values)
        return command(**options)

    parameters = [
        field.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
        for field in (_fields(groups[name]) if name in groups else [parameter])
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def refuse_as_target(path: Path, what: str, *needed: Path) -> None:
    """Refuse to write over what is replayed, or its baseline.

    Args:
        path: the run directory of a replay, or the folder of several.
        what: what the needed ones are, in words.
        needed: the run directories that are read.

    """
    for file in needed:
        if file.resolve().is_relative_to(path.resolve()):
            verb = "is" if file.resolve() == path.resolve() else "holds"
            raise UserError(f"{path} {verb} {what}: name another --out")


Folder = TypeVar("Folder", bound=RunFolder)


def is_matrix(devices: Sequence[str]) -> bool:
    """Tell whether every kernel set of a device is asked for.

    Raises:
        UserError: it is, beside other devices.

    """
    wanted = [name for name in devices if names_all(name)]
    if wanted and len(devices) > 1:
        raise UserError(
            f"--device {wanted[0]} is every kernel set of a device, each with a run of its own:"
            " give it alone"
        )
    return bool(wanted)


def matrix_path(folder: RunFolder, name: str) -> Path:
    """Return the folder of the runs: by default a new one in runs/ of that name.

    Raises:
        UserError: no runs must be made there.

    """
    from edgeflare.matrix.matrix_folder import check_matrix_folder  # noqa: PLC0415 - for few

    path = folder.out or new_folder(f"{name}-matrix")
    check_matrix_folder(path, resume=folder.resume, overwrite=folder.overwrite)
    return path


def of_kernel_set(folder: Folder, path: Path) -> Folder:
    """Return how the run of one kernel set begins: where it had not yet begun, it is not resumed.

    Args:
        folder: how all of them begin.
        path: the run directory of that kernel set.

    """
    from edgeflare.matrix.matrix_folder import is_begun  # noqa: PLC0415 - for few

    return replace(folder, out=path, resume=folder.resume and is_begun(path))
