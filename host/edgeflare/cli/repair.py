"""`edgeflare repair`: mend what a run found, as far as that can be done."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from edgeflare.cli import moved_models, run_options
from edgeflare.cli.completion import complete_device, complete_run
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, as_ctrl_c, interruptible
from edgeflare.cli.option_values import read_ensemble
from edgeflare.cli.progress import observe
from edgeflare.cli.quiet import Quiet, result
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.repair.repaired_pair import MODEL, write_pair
from edgeflare.repair.repaired_search import (
    FOLDER,
    require_same_ensemble,
    require_same_seeds,
    search_again,
    search_comparison,
)
from edgeflare.repair.shifts.boundary_set import ROUNDS
from edgeflare.repair.shifts.mixture import Mixture
from edgeflare.repair.shifts.run_to_repair import require_images_and_classes
from edgeflare.repair.shifts.shift_document import to_document, write_document, write_models
from edgeflare.repair.shifts.shift_repair import ShiftRequest, repair_by_shifts
from edgeflare.repair.shifts.shift_terminal import print_repair, print_repaired_search
from edgeflare.replay.past_run import PastRun
from edgeflare.trust.asking import decided_by_user

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="The run directory of a search.", autocompletion=complete_run
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        help="Where to write repair.json and, if there is a gain, the repaired model with a "
        "pair.toml, and the shifts alone; absent or empty.",
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="NAME",
        autocompletion=complete_device,
        help="The device to repair for, as for `edgeflare search`. If not given the run's own, as "
        "far as it is a shipped emulated one; another has to be named again.",
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Fresh inputs, as seeds are given: how many deviate before and after. Where more "
        "would, no repairer is written.",
    ),
]
Rounds = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="How often to search from each seed, in two ways, for inputs near the boundary: 24 to "
        "59 queries a round on int8 models, 135 on a float16 one, each asked of the original and "
        "of the device.",
    ),
]
MixtureOf = Annotated[
    str,
    typer.Option(
        "--mixture",
        metavar="T,A,S",
        help="How much triggers, near-boundary inputs that agree, and seeds count in the net.",
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
Ensemble = Annotated[
    str | None,
    typer.Option(
        metavar="KERNELS",
        help="With --search-again: the ensemble that RUN had, where KERNELS@PYTHON is one of it, "
        "which is never started because a run names it.",
    ),
]


def repair(
    run: Run,
    out: Out,
    device: Devices = None,
    test: Test = None,
    rounds: Rounds = ROUNDS,
    mixture: MixtureOf = "1,1,1",
    again: Again = False,
    ensemble: Ensemble = None,
    original: moved_models.Original = None,
    compressed: moved_models.Compressed = None,
    trust: run_options.Trust = False,
    _quiet: Quiet = False,
) -> int:
    """Move the boundaries of a compressed model back to where its original has them.

    From RUN's seeds and triggers and from inputs near the boundary it fits one shift for each two
    classes, judges it by inputs that it was not fitted to, beside the repairer of the DFlare paper,
    and appends it to the model, if deviations fall by more than chance. If not, it says so and
    writes no model. DIR/repair.json is written either way. Needs the extra `repair`.

    Exit codes: 0 done, with a repaired model or without; 2 the command has to be corrected; 3 a
    device, a process or a disk failed; 130 Ctrl-C.
    """
    wanted = ShiftRequest(rounds, _mixture(mixture), test)
    _check_folder(out)
    past = PastRun.open(run)
    require_images_and_classes(past)
    pair = past.pair(original, compressed)
    whole = require_same_seeds(past, pair) if again else pair
    if again:
        require_same_ensemble(past, None if ensemble is None else read_ensemble(ensemble))
    if again and device and set(device) != set(past.header.plan.devices):
        raise UserError(
            "--search-again compares with RUN, so it asks RUN's own devices: leave --device away, "
            f"or name {', '.join(past.header.plan.devices)}"
        )
    profiles = past.profiles(device, decided_by_user(trust))
    console = Console(stderr=True)
    try:
        with as_ctrl_c(), observe(console) as observer:
            found = repair_by_shifts(past, pair, profiles, wanted, observer.worked)
    except KeyboardInterrupt:
        sys.stderr.write(f"edgeflare: stopped: nothing is written to {out}\n")
        return INTERRUPTED
    document = to_document(past, found, wanted)
    if found.repaired is not None:
        write_models(out, found.repaired)
        write_pair(out, pair, _seeds(past, pair))
    write_document(out, document)
    print_repair(Console(), document, str(out))
    result(out)
    if not again or found.repaired is None:
        return 0
    whole = replace(whole, compressed=out / MODEL)
    return _search_again(console, past, whole, profiles, out, document)


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


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    if out.is_dir() and any(out.iterdir()):
        raise UserError(f"{out} is not empty: name another folder with --out")


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


def _seeds(past: PastRun, pair: Pair) -> Path:
    """Return all seeds that the run had, or those of its findings where the others are gone."""
    return past.searched_seeds(pair) or (past.directory.path / "seeds").absolute()
