"""The options of `edgeflare search`: what each is called, and what its help teaches."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.completion import complete_device, complete_strategy
from edgeflare.core.bounds import DEFAULT_RMS
from edgeflare.core.goal import Find
from edgeflare.models.preprocess import PRESETS
from edgeflare.run.json_file import MOST
from edgeflare.run.plan import STRENGTHEN
from edgeflare.search.strategy_registry import strategies

_PAIR = "The pair (these override pair.toml)"
_WHAT = "What counts"
_HOW = "How to search"
_RUN = "The run"


def _finite(value: float | None) -> float | None:
    """Refuse infinity and what is no number, which Typer takes for numbers within any range."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


class Ties(str, Enum):
    """Whether a deviation in which a compared arm has a tie counts."""

    EXCLUDE = "exclude"
    INCLUDE = "include"


class FailOn(str, Enum):
    """Which deviations make the exit code 1."""

    ANY = "any"
    HARMFUL = "harmful"
    KERNEL = "kernel"
    NONE = "none"


PairFolder = Annotated[
    Path | None,
    typer.Argument(
        metavar="PAIR",
        help="A folder that holds a pair.toml; or give --compressed, --seeds and --original.",
    ),
]
Original = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="The original model: a .tflite, an .onnx, or module:function.",
        rich_help_panel=_PAIR,
    ),
]
Compressed = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="The compressed .tflite.", rich_help_panel=_PAIR),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="An .npz with images (uint8, NHWC) and maybe labels, or a folder of image files.",
        rich_help_panel=_PAIR,
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Further images, given as seeds are, that are only evaluated: how many deviate as "
        "they are.",
        rich_help_panel=_PAIR,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Preprocessing by name: {', '.join(PRESETS)}.",
        rich_help_panel=_PAIR,
    ),
]
Scale = Annotated[
    float | None,
    typer.Option(help="Model input = (pixel / SCALE - MEAN) / STD.", rich_help_panel=_PAIR),
]
Mean = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS",
        help="One number, or one for each channel: 0.49,0.48,0.45.",
        rich_help_panel=_PAIR,
    ),
]
Std = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS", help="One number, or one for each channel.", rich_help_panel=_PAIR
    ),
]
MaxLinf = Annotated[
    str,
    typer.Option(
        "--max-linf",
        metavar="N",
        help="The most gray levels that one value may change from its seed; none for no bound.",
        rich_help_panel=_HOW,
    ),
]
MaxL2 = Annotated[
    str,
    typer.Option(
        "--max-l2",
        metavar="N",
        help="The most gray levels of Euclidean distance from the seed; by default "
        f"{DEFAULT_RMS:g} times the root of the number of values (2,520 for 28x28); none for no "
        "bound.",
        rich_help_panel=_HOW,
    ),
]
Ensemble = Annotated[
    str | None,
    typer.Option(
        metavar="KERNELS",
        help="Kernel sets of the host, the twin's own first: xnnpack, builtin, reference; or "
        "KERNELS@PYTHON for the runtime of another environment. Where "
        "members of the ensemble disagree, the device is asked. One name alone: no ensemble. "
        "Default: xnnpack; with --find kernel xnnpack,reference, or xnnpack,builtin for models "
        "over 4 MiB.",
        rich_help_panel=_HOW,
    ),
]
Resize = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="Seeds of another size: none (refuse them), stretch or center-crop.",
        rich_help_panel=_PAIR,
    ),
]
Channels = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER", help="The models' channel order, rgb or bgr.", rich_help_panel=_PAIR
    ),
]
Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="What the models give: auto (look and see), logits or probabilities.",
        rich_help_panel=_PAIR,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Take the first N seeds of the set.", rich_help_panel=_PAIR
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_device,
        help="A profile (`edgeflare devices list`), or grpc://HOST:PORT of a running agent.",
        rich_help_panel=_WHAT,
    ),
]
Devices = Annotated[
    list[str],
    typer.Option(
        "--device",
        metavar="NAME",
        autocompletion=complete_device,
        help="A profile (`edgeflare devices list`), adb://[SERIAL], ssh://[USER@]HOST, or "
        "grpc://HOST:PORT of a running agent. Several share the seeds: --device A --device B.",
        show_default="emulated-builtin",
        rich_help_panel=_WHAT,
    ),
]
FindWhat = Annotated[
    Find,
    typer.Option(
        "--find",
        help="any: the device decides differently from the original. compression: and the twin "
        "decides as the device does. kernel: the device decides differently from the twin.",
        rich_help_panel=_WHAT,
    ),
]
WithTies = Annotated[
    Ties,
    typer.Option(
        "--ties",
        help="Whether deviations count in which a label was decided by a tie.",
        rich_help_panel=_WHAT,
    ),
]
MinStrength = Annotated[
    float,
    typer.Option(
        callback=_finite,
        min=0.0,
        max=1.0,
        metavar="S",
        help="Deviations weaker than S do not count. Findings are strengthened until they reach S; "
        "the search does not look at it.",
        rich_help_panel=_WHAT,
    ),
]
Within = Annotated[
    str,
    typer.Option(
        metavar="DB",
        help="Deviations farther from their seed than this PSNR in dB do not count, once they are "
        "shrunk; none for any distance. The search does not look at it (docs/gates.md).",
        rich_help_panel=_WHAT,
    ),
]
StrategyName = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        autocompletion=complete_strategy,
        help="; ".join(f"{entry.name}: {entry.summary}" for entry in strategies().values()) + ".",
        rich_help_panel=_HOW,
    ),
]
RngSeed = Annotated[
    int,
    typer.Option(
        min=0,
        max=MOST,  # every reader of JSON keeps it
        metavar="N",
        help="The run seed: same seed, same findings.",
        rich_help_panel=_HOW,
    ),
]
MaxQueries = Annotated[
    int, typer.Option(min=1, metavar="N", help="Queries for each seed.", rich_help_panel=_HOW)
]
TimeLimit = Annotated[
    float,
    typer.Option(
        callback=_finite,
        min=0.0,
        metavar="SECONDS",
        help="Evaluation time for each seed.",
        rich_help_panel=_HOW,
    ),
]
TotalQueries = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Queries for all seeds together, shared out equally; what is left over goes to the "
        "seeds that are still searched.",
        rich_help_panel=_HOW,
    ),
]
TotalTime = Annotated[
    float | None,
    typer.Option(
        callback=_finite,
        min=0.0,
        metavar="SECONDS",
        help="Wall time for the whole search; refining what was found comes on top.",
        rich_help_panel=_HOW,
    ),
]
Strengthen = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Make each finding stronger, with at most N queries: the two sides more confident of "
        f"their labels. Default: 0; with --min-strength {STRENGTHEN}.",
        rich_help_panel=_HOW,
    ),
]
Shrink = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Bring each finding nearer to its seed, with at most N queries; after strengthening. "
        "0 leaves it where the search found it.",
        rich_help_panel=_HOW,
    ),
]
Chains = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Seeds searched at once on each device. Changes the speed, and no result.",
        rich_help_panel=_HOW,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
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
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Open the models and the device, say what would be done, write nothing.",
        rich_help_panel=_RUN,
    ),
]
FailOnWhat = Annotated[
    FailOn,
    typer.Option(
        "--fail-on",
        help="Which deviations make the exit code 1. harmful: those on which the original (with "
        "--find kernel, the twin) is right by the seed's label, those without a label, and "
        "failures of the device.",
        rich_help_panel=_RUN,
    ),
]
Allow = Annotated[
    float,
    typer.Option(
        callback=_finite,
        min=0.0,
        max=1.0,
        metavar="RATE",
        help="Share of the seeds that may have a deviation before the exit code is 1.",
        rich_help_panel=_RUN,
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
