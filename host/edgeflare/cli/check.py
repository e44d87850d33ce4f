"""`edgeflare check`: whether a compressed model may ship."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.api.check import ShownCheck
from edgeflare.cli import pair_options, run_options
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, interruptible_once
from edgeflare.cli.option_values import complete_device, read_time
from edgeflare.cli.quiet import Quiet, result
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair import Pair
from edgeflare.models.pair_file import FILE
from edgeflare.pages.terminal import print_page
from edgeflare.progress import observe
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import new_folder
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.check_page import check_page
from edgeflare.release.check_run import (
    CHECKED,
    check_into,
    check_job,
    planned_check,
    require_same_check,
)
from edgeflare.release.gates import LIMITS, read_limits
from edgeflare.release.model_card import ModelCard
from edgeflare.release.named_models import NamedModels
from edgeflare.release.pair_assumptions import assumed_toml
from edgeflare.release.pair_check import PairCheck, check_request
from edgeflare.run.run_directory import CHECK_DOCUMENT
from edgeflare.trust import decided_by_user

Models = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PAIR",
        help="A folder that holds a pair.toml; or two models, the original and the compressed one;"
        " or the compressed one alone, to judge the device by it.",
        show_default=False,
    ),
]
Inputs = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="The inputs: an .npz or a folder, as seeds are given. By default the pair's seeds.",
    ),
]
Devices = Annotated[
    list[str],
    typer.Option(
        "--device",
        metavar="NAME",
        autocompletion=complete_device,
        help="A profile (`edgeflare devices list`), adb://[SERIAL], ssh://[USER@]HOST, or"
        " grpc://HOST:PORT of a running agent; NAME/gpu is NAME on another kernel set. Give it"
        " again for a further device: each is judged, and one that fails is enough.",
        show_default="emulated-builtin",
    ),
]
TimeLimit = Annotated[
    str,
    typer.Option("--time-limit", "--budget", metavar="TIME", help="How long at most: 90s, 5m, 1h."),
]
Gates = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        metavar="NAME<LIMIT",
        help="Another limit, such as 'accuracy-drop<0.02'; 'NAME<inf' leaves a gate out. Gates: "
        + "; ".join(
            f"{name}, {limit.words}"
            + ("" if limit.limit is None else f" (at most {limit.limit:g})")
            for name, limit in LIMITS.items()
        )
        + ".",
    ),
]
GatesFile = Annotated[
    Path | None,
    typer.Option(
        "--gates-file",
        metavar="FILE",
        help="A .toml file with a table [gates], such as one of your team for all its models; its"
        " limits replace those of pair.toml, and --gate replaces them.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Let nothing ship before each gate is decided by its interval."),
]
Undecided = Annotated[
    str,
    typer.Option(metavar="<fail|pass>", help="What an undecided check is for the exit code."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder of the check, absent or empty. By default a new folder in runs/.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the check in --out.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the check in --out.")]


NoInputs = Annotated[
    bool,
    typer.Option(
        "--no-inputs",
        help="Keep no inputs in DIR, and show none in check.html, so that it may be passed on.",
    ),
]
NoNear = Annotated[
    bool,
    typer.Option(
        "--no-near",
        help="Do not search near to the inputs for some that are decided otherwise; so it is with"
        " --no-inputs, too, since a search keeps what it finds.",
    ),
]
Mend = Annotated[
    bool,
    typer.Option(
        "--mend",
        help="Where the numbers in the file are to blame, try what `edgeflare repair` at equal cost"
        " gives, by its own held-out figures, into DIR/mend; that has two fifths of the time."
        " Needs the extra `repair`.",
    ),
]
WritePair = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Of models without a pair.toml: write one into DIR with what is assumed, and nothing"
        " else.",
    ),
]
Card = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the verdict and the gates into a model card too, such as the README.md of a"
        " model on Hugging Face; an earlier section is replaced, the rest stays.",
    ),
]


@run_options.with_option_groups
def check(
    models: Models = None,
    original: pair_options.Original = None,
    compressed: pair_options.Compressed = None,
    *,
    preprocessing: pair_options.Preprocessing,
    inputs: Inputs = None,
    limit: pair_options.Limit = None,
    device: Devices = ["emulated-builtin"],  # noqa: B006 - never changed
    time_limit: TimeLimit = "5m",
    gate: Gates = None,
    gates_file: GatesFile = None,
    strict: Strict = False,
    undecided: Undecided = "fail",
    out: Out = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    no_near: NoNear = False,
    no_inputs: NoInputs = False,
    mend: Mend = False,
    card: Card = None,
    write_pair: WritePair = None,
    dry_run: run_options.DryRun = False,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Say whether a compressed model may ship: ship, do not ship or undecided, and why.

    The inputs are evaluated on all arms, the files are read, and the layers are looked into. Of
    more than 10,000 inputs so many are taken, spread over all labels, unless --limit says
    otherwise. DIR holds check.json, check.html to look at, and a layer table; `edgeflare report
    DIR` shows it again, and writes JUnit and Markdown.

        edgeflare check PAIR
        edgeflare check PAIR --device pixel --inputs test.npz --out runs/check
        edgeflare check original.tflite compressed.tflite --inputs images/
        edgeflare check compressed.tflite --device pixel

    Exit codes: 0 it may ship; 1 it may not, or that is undecided; 2 the command has to be
    corrected; 3 a device, a process or a disk failed; 130 Ctrl-C. After 3 and 130 the check says
    what is known, and the same command with --resume goes on.
    """
    began = time.monotonic()
    _require_consistent(undecided, out, resume=resume, overwrite=overwrite)
    if write_pair is not None:
        _require_pair_alone(out, card, resume=resume, overwrite=overwrite, dry_run=dry_run)
    decided = decided_by_user(trust)
    named = NamedModels.of(models or [], inputs, original, compressed)
    given = preprocessing.settings(
        named.original, None if inputs is None else str(inputs), named.compressed
    )
    loaded = named.load(given, decided)
    pair, assumed = loaded.pair, loaded.assumed
    if write_pair is not None:
        return _write_pair(pair, write_pair, assumed)
    loaded.require_known(mend=mend)
    model_card = None if card is None else ModelCard.read(card)
    profiles = find_profiles(device, decided)
    request = check_request(
        pair,
        profiles,
        read_limits(gate or (), pair.gates, gates_file),
        limit=limit,
        time_limit_seconds=read_time("--time-limit", time_limit),
        strict=strict,
        draws=named.draws,
        inputs=not no_inputs,
        near=not no_near,
        mend=mend,
    )
    path = out or new_folder(f"{pair.folder_name}-check")
    if dry_run:
        job = check_job(loaded, profiles, request, path, began)
        with loaded.naming_next():
            _tell(job, path, card, overwrite=overwrite, resume=resume)
        return 0
    with ExitStack() as stack:
        stack.enter_context(_resumable(path))
        document, lost = check_into(
            path,
            loaded,
            profiles,
            request,
            ShownCheck(stack.enter_context(observe(Console(stderr=True)))),
            stack.enter_context(interruptible_once("writing what is known")),
            began,
            overwrite=overwrite,
            resume=resume,
        )
    print_page(Console(), check_page(document), str(path))
    result(path)
    if model_card is not None:
        model_card.keep(document)
    if lost is not None:
        with _resumable(path):
            raise lost
    return _exit_code(document, undecided)


@contextmanager
def _resumable(path: Path) -> Iterator[None]:
    """Say of a failure how to go on, where there is something to go on with."""
    try:
        yield
    except (InfrastructureError, OSError) as error:
        kept = (path / CHECK_DOCUMENT).is_file()
        how = f"; the same command with --out {path} --resume goes on" if kept else ""
        raise InfrastructureError(f"{error}{how}") from error


def _exit_code(document: CheckDocument, undecided: str) -> int:
    if document.stopped_by in ("interrupt", "sigterm"):
        return INTERRUPTED
    may_pass = document.verdict == "undecided" and undecided == "pass"
    return 0 if document.passes or may_pass else 1


def _require_consistent(undecided: str, out: Path | None, *, resume: bool, overwrite: bool) -> None:
    """Refuse options that have other values than they may, or contradict each other."""
    if undecided not in ("fail", "pass"):
        raise UserError(f"--undecided {undecided!r}: say fail or pass")
    if resume and (overwrite or out is None):
        other = "--overwrite replaces it" if overwrite else "has to know the folder: add --out DIR"
        raise UserError(f"--resume goes on with a check, and {other}")


def _require_pair_alone(
    out: Path | None, card: Path | None, *, resume: bool, overwrite: bool, dry_run: bool
) -> None:
    """Refuse --write-pair where something else is to be written, or nothing at all."""
    for option, given in (
        ("--dry-run", dry_run),
        ("--card", card is not None),
        ("--out", out is not None),
        ("--resume", resume),
        ("--overwrite", overwrite),
    ):
        if given:
            raise UserError(
                f"--write-pair writes a pair.toml and checks nothing: leave out {option}"
            )


def _write_pair(pair: Pair, folder: Path, assumed: Assumption | None) -> int:
    """Write the `pair.toml` of two models."""
    if assumed is None:
        raise UserError(
            "--write-pair is for two models and inputs that have no pair.toml: name these alone"
        )
    file = folder / FILE
    if file.exists():
        raise UserError(f"{file} exists: correct it, or name another folder with --write-pair")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(file, assumed_toml(pair, folder, assumed.lines).encode())
    Console().print(f"{file}", markup=False, highlight=False, soft_wrap=True)
    result(file)
    return 0


def _tell(job: PairCheck, path: Path, card: Path | None, *, overwrite: bool, resume: bool) -> None:
    """Print what would be checked, and where that would be written."""
    if resume:
        require_same_check(path, job.request)
    else:
        CHECKED.check(path, overwrite=overwrite)
    would = f"go on with {path}" if resume else f"write {path}"
    would = would if card is None else f"{would}, and write a section of {card}"
    for line in (*planned_check(job), f"would {would}; nothing was written"):
        Console().print(line, markup=False, highlight=False, soft_wrap=True)
