"""The options of `edgeflare repair`, and which of them do not go together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.further_options import METHODS
from edgeflare.cli.option_values import complete_device, complete_run
from edgeflare.errors import UserError
from edgeflare.repair.repair_request import RepairRequest, Target
from edgeflare.repair.shifts.boundary_set import ROUNDS

_METHODS = (
    "auto tries all of the following that the limits allow, and keeps the best: ranges and"
    " rounding change the file in its place, equalization scales channels before these, rewrites"
    " gives tensors steps of their own, calibration quantizes the original anew, precision and"
    " weights-only compute in float, and learning moves weights and ranges towards the original's"
    " answers, behind others. shifts, the last and slowest, appends operators, and needs a RUN. By"
    " their names alone: dare tunes weights towards the original's layer before the last, fmt so"
    " that an attribute of --groups decides less. archrepair trains the float original by labels,"
    " and compresses it again."
)

Source = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|PAIR",
        help="The run directory of a search or a survey, or a folder that holds a pair.toml.",
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
    str,
    typer.Option(
        "--method",
        metavar="METHOD",
        help=_METHODS,
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
    str,
    typer.Option(metavar="MORE", help="How much larger the file may be, as +1%, +2KiB or none."),
]
MaxLatency = Annotated[
    str,
    typer.Option(
        metavar="MORE",
        help="How much longer an inference may take on each device, as +1%, +20us or none; "
        "measured in turns. What exceeds a limit is judged too, and named where it gains more.",
    ),
]
Robustness = Annotated[
    bool,
    typer.Option(
        "--robustness",
        help="Attack the chosen model and the one before by FGSM and PGD, from the seeds that "
        "judge; needs the extra whitebox.",
        rich_help_panel=METHODS,
    ),
]
SliceOf = Annotated[
    float | None,
    typer.Option(
        "--slice",
        min=1.0,
        max=100.0,
        metavar="PERCENT",
        help="Synapses of each layer that dare and fmt change, those that contribute most; 95 and "
        "80 if not given, 100 for all.",
        rich_help_panel=METHODS,
    ),
]
Checkpoints = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="With dare: a checkpoint of the original's training as a float .tflite file, of which"
        " the compressed model learns by labels, judged under attack. Say it once for each, those"
        " of the latter half of the training.",
        rich_help_panel=METHODS,
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Batches of 128 seeds that archrepair trains each candidate with; 200 if not given.",
        rich_help_panel=METHODS,
    ),
]
Suspects = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="The block with most of the N most suspicious neurons is the one that archrepair"
        " locates; 50 if not given.",
        rich_help_panel=METHODS,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="With fmt or auto: positions of the columns of an attribute of table rows that is to "
        "decide less, such as 8, or 8,9 for a one-hot code; judged by SPD, AAOD and EOD.",
        rich_help_panel=METHODS,
    ),
]
RngSeed = Annotated[int, typer.Option(min=0, metavar="N", help="The run seed.")]
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
Seeds = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Of a PAIR: other seeds than its own."),
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
        rich_help_panel=METHODS,
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


def require_learning_settings(
    request: RepairRequest, *, pair: bool, again: bool, resume: bool
) -> None:
    """Refuse settings of methods that learn where none of these is asked for.

    Args:
        request: what is asked.
        pair: whether a pair is named, and no run.
        again: whether the repaired model is to be searched.
        resume: whether a repair is to go on.

    Raises:
        UserError: one does not go with another.

    """
    method = request.method
    if request.slice_percent is not None and method not in ("dare", "fmt"):
        raise UserError("--slice is a setting of --method dare and fmt: name one, or leave it away")
    if method == "fmt" and not request.groups:
        raise UserError(
            "--method fmt needs --groups, the columns of the attribute that is to decide less, such"
            " as --groups 8"
        )
    if request.checkpoints:
        if method != "dare" or again or not pair:
            raise UserError(
                "--checkpoints are for a pair, by --method dare, without --search-again"
            )
        if request.robustness:
            raise UserError("--robustness: a repair by --checkpoints is attacked anyway: leave it")
    by_labels = request.by_labels
    if resume and by_labels in ("--groups", "--checkpoints"):
        raise UserError(f"--resume: a repair by {by_labels} stores nothing to go on with: leave it")
    if request.groups and (method not in ("auto", "fmt") or again or not pair):
        raise UserError("--groups is for a pair, by --method fmt or auto, without --search-again")
    if request.groups and request.robustness:
        raise UserError(
            "--robustness attacks what deviates less, not what --groups mends: leave it"
        )


def require_architecture_settings(
    request: RepairRequest, *, pair: bool, again: bool, resume: bool
) -> None:
    """Refuse settings of archrepair where it is not asked for, and those that it does not have.

    Args: as of `require_learning_settings`.

    Raises:
        UserError: one does not go with another.

    """
    if request.method != "archrepair":
        if request.steps is not None or request.suspects is not None:
            raise UserError(
                "--steps and --suspects are settings of --method archrepair: name it, or leave them"
                " away"
            )
        return
    unknown = {
        "--resume": resume,
        "--robustness": request.robustness,
        "--in-place": request.in_place,
    }
    if named := [option for option, given in unknown.items() if given]:
        raise UserError(f"--method archrepair does not go with {', '.join(named)}: leave it away")
    if again or not pair:
        raise UserError("--method archrepair is for a pair, without --search-again")
