"""`edgeflare repair`: mend what a run found, as far as that can be done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from edgeflare.bench.bench_runs import check_folder
from edgeflare.cli import moved_models, run_options
from edgeflare.cli.completion import complete_device, complete_run
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, as_ctrl_c, interruptible
from edgeflare.cli.option_values import read_ensemble
from edgeflare.cli.progress import observe
from edgeflare.cli.quiet import Quiet, result
from edgeflare.core.goal import Find, Goal
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import FILE, Settings
from edgeflare.models.pair_interface import PairInterface
from edgeflare.repair.candidate_plans import Method, Target, allows_shifts
from edgeflare.repair.image_classifier import require_image_classifier
from edgeflare.repair.judging.shown_inputs import write_shown
from edgeflare.repair.repair_document import repair_document
from edgeflare.repair.repair_outcome import RepairOutcome
from edgeflare.repair.repair_progress import ReportProgress
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_run import repair_pair, shifts_alone
from edgeflare.repair.repair_terminal import print_repair, print_repaired_search
from edgeflare.repair.repaired_pair import (
    MODEL,
    write_document,
    write_pair,
    write_repaired,
)
from edgeflare.repair.repaired_search import (
    FOLDER,
    require_same_ensemble,
    require_same_seeds,
    search_again,
    search_comparison,
)
from edgeflare.repair.shifts.boundary_set import ROUNDS
from edgeflare.repair.shifts.mixture import Mixture
from edgeflare.repair.shifts.shift_candidate import ShiftRequest
from edgeflare.replay.past_run import PastRun
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.trust.asking import decided_by_user

Source = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|PAIR",
        help="The run directory of a search, or a folder that holds a pair.toml.",
        autocompletion=complete_run,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        help="Where to write repair.json and, if there is a gain, the repaired model with a "
        "pair.toml; absent or empty.",
    ),
]
MethodOf = Annotated[
    Method,
    typer.Option(
        "--method",
        help="auto tries all of the following that the limits allow, and keeps the best: bias, "
        "ranges and rounding change the file in its place, precision and weights-only compute in "
        "float. shifts, the last and slowest, appends operators, and needs a RUN.",
    ),
]
TargetOf = Annotated[
    Target,
    typer.Option(
        "--target",
        help="What the target computes: float, or int8-only, as some accelerators do.",
    ),
]
InPlaceOnly = Annotated[
    bool,
    typer.Option("--in-place", help="Keep the file's length, its operators and their order."),
]
MaxSize = Annotated[
    str | None,
    typer.Option(metavar="MORE", help="How much larger the file may be, as +1% or +2KiB."),
]
MaxLatency = Annotated[
    str | None,
    typer.Option(
        metavar="MORE", help="How much longer an inference may take on the device, as +5%."
    ),
]
RngSeed = Annotated[
    int, typer.Option(min=0, metavar="N", help="Generator seed of all that is drawn.")
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="NAME",
        autocompletion=complete_device,
        help="The device to repair for, as for `edgeflare search`. If not given that of RUN, as "
        "far as it is a shipped emulated one; another has to be named again. Of a PAIR "
        "emulated-builtin.",
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Fresh inputs, as seeds are given: how many deviate before and after. Where more "
        "would, no model is written.",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help=f"For shifts, {ROUNDS} if not given: how often to search from each seed, in two "
        "ways, for inputs near the boundary: 24 to 59 queries a round on int8 models, 135 on a "
        "float16 one, each asked of the original and of the device.",
    ),
]
MixtureOf = Annotated[
    str | None,
    typer.Option(
        "--mixture",
        metavar="T,A,S",
        help="For shifts, 1,1,1 if not given: how much triggers, near-boundary inputs that agree, "
        "and seeds count in the net.",
    ),
]
Again = Annotated[
    bool,
    typer.Option(
        "--search-again",
        help="Search the repaired model as RUN was searched, into DIR/again, and set both side by "
        "side.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with the repair in DIR; candidates that were tried stay."),
]
Ensemble = Annotated[
    str | None,
    typer.Option(
        metavar="KERNELS",
        help="With --search-again: the ensemble that RUN had, where KERNELS@PYTHON is one of it, "
        "which is never started because a run names it.",
    ),
]


def repair(
    source: Source,
    out: Out,
    method: MethodOf = "auto",
    target: TargetOf = "float",
    in_place: InPlaceOnly = False,
    max_size: MaxSize = None,
    max_latency: MaxLatency = None,
    device: Devices = None,
    test: Test = None,
    rng_seed: RngSeed = 0,
    rounds: Rounds = None,
    mixture: MixtureOf = None,
    again: Again = False,
    ensemble: Ensemble = None,
    resume: Resume = False,
    original: moved_models.Original = None,
    compressed: moved_models.Compressed = None,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Make a compressed model decide as its original does, as far as that can be done.

    Candidates are fitted to the original on three fifths of the seeds, compared on another fifth,
    and the best of them is judged on the last: inputs near the original's decision boundary, and
    fresh ones. If it does not surely gain there, no model is written, and why is said.
    DIR/repair.json is written either way. Needs the extra `repair`.

    Exit codes: 0 done, with a repaired model or without; 2 the command has to be corrected; 3 a
    device, a process or a disk failed; 130 Ctrl-C. After 3 and 130 the same command with --resume
    goes on.
    """
    check_folder(out, resume=resume, holds="repair")
    request = RepairRequest(
        *(method, target, in_place, max_size, max_latency, test, rng_seed),
        shifts=_shift_request(rounds, mixture),
    )
    pair_alone = _is_pair(source)
    if rounds is not None or mixture is not None:
        _require_shifts(request, source if pair_alone else None)
    decided = decided_by_user(trust)
    if pair_alone:
        if again or method == "shifts":
            what = "--search-again" if again else "--method shifts"
            raise UserError(f"{what} needs a run, and {source} is a pair: search it first")
        given = Settings(
            original=original, compressed=None if compressed is None else str(compressed)
        )
        pair = load_pair(source, given, decided)
        require_image_classifier(pair.interface, pair.name)
        profiles = find_profiles(device or ["emulated-builtin"], decided)
        return (
            INTERRUPTED if _repair(pair, None, profiles, request, out, resume=resume) is None else 0
        )
    past = PastRun.open(source)
    require_image_classifier(PairInterface.from_json(past.header.pair), str(past.directory.path))
    pair = require_same_seeds(past, past.pair(original, compressed))
    profiles = past.profiles(device, decided)
    if again:
        _require_same_search(past, device, ensemble)
    repaired = _repair(pair, past, profiles, request, out, resume=resume)
    if not again or repaired is None or not repaired["written"]:
        return INTERRUPTED if repaired is None else 0
    after = replace(pair, compressed=out / MODEL)
    return _search_again(Console(stderr=True), past, after, profiles, out, repaired)


def _repair(
    pair: Pair,
    past: PastRun | None,
    profiles: Sequence[Profile],
    request: RepairRequest,
    out: Path,
    *,
    resume: bool,
) -> dict[str, Any] | None:
    """Repair a pair, and return the document; None where stopped."""
    if shifts_alone(pair, past, request):
        sys.stderr.write(
            f"edgeflare: the original {pair.original} is no .tflite file: of all methods shifts"
            " alone are tried, which are not fitted to its weights\n"
        )
    names = tuple(profile.name for profile in profiles)
    plan = Plan("boundary", Goal(), ()) if past is None else past.header.plan
    plan = replace(
        plan,
        goal=Goal(Find.ANY),
        devices=names,
        ensemble=(profiles[0].kernels,),  # they foretell the device
        elsewhere=(),
    )
    found = _worked(
        out,
        lambda progress: repair_pair(
            pair, past, plan, profiles, request, out, progress, resume=resume
        ),
    )
    if found is None:
        return None
    document = repair_document(pair, past, found, request)
    if found.written and found.chosen is not None:
        write_repaired(out, found.chosen)
        write_pair(out, pair, pair.seeds)
    write_shown(out, pair, found.shown)
    write_document(out, document)
    print_repair(Console(), document, str(out))
    result(out)
    return document


def _worked(out: Path, work: Callable[[ReportProgress], RepairOutcome]) -> RepairOutcome | None:
    """Return what work makes, its progress shown; None where Ctrl-C stopped it.

    Raises:
        InfrastructureError: as the work raises it, with how to go on.

    """
    try:
        with as_ctrl_c(), observe(Console(stderr=True)) as observer:
            return work(observer.worked)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"edgeflare: stopped: the candidates that were tried are in {out}, no model is chosen;"
            " the same command with --resume goes on\n"
        )
        return None
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; the same command with --resume goes on") from error


def _is_pair(source: Path) -> bool:
    here = source if source.is_file() else source / FILE
    return here.is_file() and not RunDirectory(source).journal.exists()


def _require_same_search(past: PastRun, device: Sequence[str] | None, ensemble: str | None) -> None:
    """Refuse --search-again with other devices than the run's, or another ensemble.

    Raises:
        UserError: it is so.

    """
    require_same_ensemble(past, None if ensemble is None else read_ensemble(ensemble))
    if device and set(device) != set(past.header.plan.devices):
        raise UserError(
            "--search-again compares with RUN, so it asks RUN's own devices: leave --device away, "
            f"or name {', '.join(past.header.plan.devices)}"
        )


def _search_again(
    console: Console,
    past: PastRun,
    pair: Pair,
    profiles: Sequence[Profile],
    out: Path,
    document: dict[str, Any],
) -> int:
    with interruptible() as interrupt:
        after = search_again(
            past, pair, profiles, out / FOLDER, lambda: observe(console), interrupt
        )
    document["again"] = search_comparison(past.document, after)
    write_document(out, document)
    print_repaired_search(Console(), document)
    return INTERRUPTED if after.stopped_by == "interrupt" else 0


def _shift_request(rounds: int | None, mixture: str | None) -> ShiftRequest:
    """Return the settings of shifts, with the defaults of what is not given."""
    default = ShiftRequest()
    return ShiftRequest(
        default.rounds if rounds is None else rounds,
        default.mixture if mixture is None else _mixture(mixture),
    )


def _require_shifts(request: RepairRequest, pair: Path | None) -> None:
    """Refuse settings of shifts where no shifts are tried.

    Args:
        request: what is asked.
        pair: the pair that is to be repaired; None for a run.

    Raises:
        UserError: it is so.

    """
    allowed = allows_shifts(request.method, request.target, in_place=request.in_place)
    if allowed and pair is None:
        return
    said = f"{pair} is a pair" if allowed else "these options allow none"
    raise UserError(
        f"--rounds and --mixture are settings of shifts, and {said}: leave them away, or repair a"
        " run with --method shifts"
    )


def _mixture(text: str) -> Mixture:
    try:
        shares = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        shares = []
    if len(shares) != 3 or min(shares) < 0.0 or not 0.0 < sum(shares) < float("inf"):
        raise UserError(
            f"--mixture {text!r}: expected three numbers from 0, of triggers, near-boundary inputs"
            " that agree, and seeds, as in 1,1,1"
        )
    return Mixture(*(share / sum(shares) for share in shares))
