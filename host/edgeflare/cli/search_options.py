"""Command-line options of a search: devices, what counts as a finding, and how to search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.further_options import PARTS, SEARCH_DETAIL
from edgeflare.cli.option_values import (
    complete_device,
    complete_parameter,
    complete_run,
    complete_strategy,
    read_bound,
    require_finite,
    time_of,
)
from edgeflare.core.domain import PSNR
from edgeflare.core.goal import Find, Goal
from edgeflare.core.seeds import SeedChoice
from edgeflare.domains.image.image_domain import DEFAULT_LINF, DEFAULT_RMS
from edgeflare.errors import UserError
from edgeflare.run.plan import (
    MAX_QUERIES,
    MAX_TIME_SECONDS,
    SHOWN,
    STRENGTHEN,
    Plan,
    Refine,
    ShrinkBy,
)
from edgeflare.run.seed_ids import SeedIds
from edgeflare.strategies.strategy_registry import find_strategy, strategy_names

_WHAT = "What counts"
_HOW = "How to search"


class Ties(str, Enum):
    """Whether a deviation in which a compared arm has a tie counts."""

    EXCLUDE = "exclude"
    INCLUDE = "include"


MaxLinf = Annotated[
    str,
    typer.Option(
        "--max-linf",
        metavar="N",
        help="The most levels (of an image gray levels) that one value may change from its seed; "
        "none for no bound.",
        show_default=f"{DEFAULT_LINF:g} for images; each domain has its own",
        rich_help_panel=SEARCH_DETAIL,
    ),
]
MaxL2 = Annotated[
    str,
    typer.Option(
        "--max-l2",
        metavar="N",
        help="The most levels of Euclidean distance from the seed; by default, for images, "
        f"{DEFAULT_RMS:g} times the root of the number of values (2,520 for 28x28); none for no "
        "bound.",
        show_default=False,
        rich_help_panel=SEARCH_DETAIL,
    ),
]
Ensemble = Annotated[
    str | None,
    typer.Option(
        metavar="KERNELS",
        help="Kernel sets of the host, the twin's own first: xnnpack, builtin, reference; or "
        "KERNELS@2.2.0 for a released version of the runtime, KERNELS@PYTHON for another "
        "environment's. Where members of the ensemble disagree, the device is asked. One name "
        "alone: no ensemble. Default: xnnpack; with --find kernel xnnpack,reference, or "
        "xnnpack,builtin for models over 4 MiB.",
        rich_help_panel=SEARCH_DETAIL,
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
        "grpc://HOST:PORT of a running agent. Several share the seeds: --device A --device B. "
        "NAME/gpu is another kernel set, NAME/all or emulated-all a table of each.",
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
        help="Whether deviations of mutants count in which a label was decided by a tie."
        " Of seeds every changed decision is a deviation (docs/gates.md).",
        rich_help_panel=SEARCH_DETAIL,
    ),
]
MinStrength = Annotated[
    float,
    typer.Option(
        callback=require_finite,
        min=0.0,
        max=1.0,
        metavar="S",
        help="Deviations weaker than S do not count. Findings are strengthened until they reach S.",
        rich_help_panel=_WHAT,
    ),
]
Within = Annotated[
    str,
    typer.Option(
        metavar="DB",
        help="Deviations farther from their seed than this PSNR in dB (of sounds SNR) do not "
        "count, once they are shrunk; none for any distance (docs/gates.md).",
        show_default=f"{PSNR.within:g} for images",
        rich_help_panel=_WHAT,
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        autocompletion=complete_strategy,
        help=f"{', '.join(strategy_names())}; `edgeflare strategies` says what each is. Unless "
        "given, boundary where outputs are decisions, and climb where they are values.",
        rich_help_panel=_HOW,
    ),
]
SetParameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        autocompletion=complete_parameter,
        help="Set a parameter of the strategy; may be given several times. `edgeflare strategies"
        " NAME` lists them.",
        rich_help_panel=SEARCH_DETAIL,
    ),
]
RngSeed = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="The run seed: same seed, same findings.",
        rich_help_panel=_HOW,
    ),
]
MaxQueries = Annotated[
    int, typer.Option(min=1, metavar="N", help="Queries for each seed.", rich_help_panel=_HOW)
]
MaxTime = Annotated[
    float,
    typer.Option(
        parser=time_of("--max-time"),
        metavar="TIME",
        help="Evaluation time for each seed: 90s, 5m, 1h.",
        show_default=f"{MAX_TIME_SECONDS:g}s",
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
TimeLimit = Annotated[
    float | None,
    typer.Option(
        parser=time_of("--time-limit"),
        metavar="TIME",
        help="Wall time for the whole search, without refining.",
        rich_help_panel=_HOW,
    ),
]
Operators = Annotated[
    str,
    typer.Option(
        "--operators",
        metavar="NAMES",
        help="The mutation operators to draw from, separated by commas: names that `edgeflare "
        "operators` lists, built-in for EdgeFlare's own, all for all that are installed. Of "
        "EdgeFlare's strategies boundary, boundary-mh, climb and random draw from them; the others "
        "have their own.",
        rich_help_panel=SEARCH_DETAIL,
    ),
]
Strengthen = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Make both sides of each finding more confident, with at most N queries. Default: 0; "
        f"with --min-strength {STRENGTHEN}.",
        rich_help_panel=_HOW,
    ),
]
RefineUntil = Annotated[
    Refine,
    typer.Option(
        "--refine",
        help="What is shrunk, and until when: all spends the queries of --shrink on each finding, "
        f"shown on the {SHOWN} that reports show first alone, gate stops with each as soon as it "
        "is within --within. all and gate decide the gate alike; with shown, findings that were "
        "not shrunk may be too far to count.",
        rich_help_panel=SEARCH_DETAIL,
    ),
]
ShrinkByWhat = Annotated[
    ShrinkBy,
    typer.Option(
        "--shrink-by",
        help="How shrinking finds its way: queries estimates a gradient from answers, gradient "
        "computes it from the two models (extra whitebox), and needs a quarter of the queries.",
        rich_help_panel=SEARCH_DETAIL,
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
Coverage = Annotated[
    str | None,
    typer.Option(
        metavar="T,T",
        help="Measure neuron coverage at these thresholds, from 0 to below 1, such as "
        "0,.25,.5,.75: of the seeds, of the findings, and of as many other seeds. Changes no "
        "result, and says nothing about deviations (docs/report.md).",
        rich_help_panel=SEARCH_DETAIL,
    ),
]
SeedIdsOption = Annotated[
    str | None,
    typer.Option(
        "--seed-ids",
        metavar="IDS|FILE",
        help="Search these seeds only, each under its own id, so that `edgeflare merge` makes one "
        "run of several: such as 0:50,60 for 0 to 49 and 60, or a file of such ids and ranges.",
        rich_help_panel=PARTS,
    ),
]
ScreeningRun = Annotated[
    Path | None,
    typer.Option(
        "--screening",
        metavar="RUN",
        help="With --seed-ids: take from this run what all arms answered to every seed. boundary "
        "with --find any, and donor, read it.",
        autocompletion=complete_run,
        rich_help_panel=PARTS,
    ),
]
ScreenOnly = Annotated[
    bool,
    typer.Option(
        "--screen-only",
        help="Evaluate the seeds and search none, for --screening; --resume searches on.",
        rich_help_panel=PARTS,
    ),
]
Chains = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Seeds searched at once on each device. Changes the speed, and no result.",
        rich_help_panel=SEARCH_DETAIL,
    ),
]


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When a search from one seed ends, and whether a deviation by a tie ends it."""

    ties: WithTies = Ties.EXCLUDE
    max_queries: MaxQueries = MAX_QUERIES
    max_time: MaxTime = MAX_TIME_SECONDS


@dataclass(frozen=True, slots=True)
class MutantBounds:
    """How far a mutant may be from its seed."""

    max_linf: MaxLinf = "default"
    max_l2: MaxL2 = "default"


@dataclass(frozen=True, slots=True)
class SeedSelection:
    """Which part of a run is done: some seeds, or only what comes before the search."""

    seed_ids: SeedIdsOption = None
    screening: ScreeningRun = None
    screen_only: ScreenOnly = False

    def read_seed_ids(self) -> SeedIds | None:
        """Return the ids of the seeds that are searched; None for all.

        Raises:
            UserError: they are none.

        """
        return None if self.seed_ids is None else SeedIds.read_option(self.seed_ids)


def require_whole(selection: SeedSelection) -> None:
    """Refuse a part of a run where several runs are asked for."""
    if selection != SeedSelection():
        raise UserError(
            "--seed-ids, --screening and --screen-only are for one run, and each kernel set of"
            " NAME/all has one: name one kernel set, such as NAME/builtin"
        )


def make_plan(
    strategy: str,
    find: Find,
    devices: tuple[str, ...],
    choice: SeedChoice,
    limits: SearchLimits,
    bounds: MutantBounds,
    parameters: Sequence[str] = (),
) -> Plan:
    """Return the plan that the options of every search describe."""
    return Plan(
        strategy=strategy,
        parameters=find_strategy(strategy).read_parameters(parameters),
        goal=Goal(find, limits.ties is Ties.INCLUDE),
        devices=devices,
        limit=choice.limit,
        first=choice.first,
        max_queries=limits.max_queries,
        max_time_seconds=limits.max_time,
        max_linf=read_bound("--max-linf", bounds.max_linf),
        max_l2=read_bound("--max-l2", bounds.max_l2),
    )


def refuse_options_of_searches(given: Mapping[str, object], run: Path) -> None:
    """Refuse options that were given for a conformance run, and say nothing of one.

    Args:
        given: options by their names, with what the user gave; falsy where that is nothing.
        run: the run directory.

    """
    for name, value in given.items():
        if value:
            raise UserError(
                f"{name} is for what a search or a survey found, and {run} is a conformance run:"
                f" leave {name} out"
            )
