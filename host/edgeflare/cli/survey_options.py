"""Command-line options of a survey: inputs, conditions, and when the device was asked enough."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.further_options import SURVEY_DETAIL
from edgeflare.cli.option_values import require_finite, time_of
from edgeflare.conditions.condition_choice import NO_CONDITIONS, read_severities
from edgeflare.errors import UserError
from edgeflare.survey.items.survey_inputs import GROUPS_FILE
from edgeflare.survey.record.survey_plan import (
    CONFIDENCE,
    FINDINGS,
    PRECISION,
    RARE_QUERIES,
    SurveyBounds,
)

_WHAT = "What is surveyed"
_HOW_LONG = "How many device queries"
_JUDGED = "What is judged"

ALL_SEVERITIES = "1-5"
"""Severities of conditions for which nothing else is said."""

Inputs = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="The inputs: an .npz or a folder, as seeds are given, a sample of what the device "
        "will see. By default the pair's seeds, which may have been selected.",
        rich_help_panel=_WHAT,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Take N of the inputs: of each label its share, the first of it; without labels "
        "evenly through all.",
        rich_help_panel=_WHAT,
    ),
]
First = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Take the first N inputs. Of inputs that are sorted, as by class, these are no "
        "sample.",
        rich_help_panel=_WHAT,
    ),
]
Conditions = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Sets and conditions, separated by commas (`edgeflare conditions` lists them): "
        "common,camera or fog,jpeg-quality; a FILE.toml; or none, for the inputs as they are.",
        show_default="common",
        rich_help_panel=_WHAT,
    ),
]
Severities = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="From 1, hardly noticed, to 5, severe: 1-5, 3 or 1,3,5.",
        show_default=ALL_SEVERITIES,
        rich_help_panel=_WHAT,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Compare groups of inputs: an array of that name in the .npz, with a word or a whole "
        f"number for each; of a folder a column of its {GROUPS_FILE}, beside the column name.",
        rich_help_panel=SURVEY_DETAIL,
    ),
]
Ensemble = Annotated[
    str | None,
    typer.Option(
        metavar="KERNELS",
        help="Kernel sets of the host, the twin's own first: xnnpack, builtin, reference; or "
        "KERNELS@2.2.0 for a released version of the runtime, KERNELS@PYTHON for another "
        "environment's. The device is asked more often where one of the others disagrees with the "
        "first. Default: xnnpack, no ensemble.",
        rich_help_panel=SURVEY_DETAIL,
    ),
]
RngSeed = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="The run seed: same seed, same inputs under conditions, same questions.",
        rich_help_panel=_WHAT,
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        callback=require_finite,
        min=1e-6,
        max=0.5,
        metavar="HALF",
        help="Ask the device until the over-all rate is known to plus or minus HALF.",
        show_default=f"{PRECISION:g}, unless another option ends the survey",
        rich_help_panel=_HOW_LONG,
    ),
]
DeviceQueries = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Ask the device N times at most.", rich_help_panel=_HOW_LONG
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        parser=time_of("--time-limit"),
        metavar="TIME",
        help="Ask the device for so long at most; the time in which the host answers all inputs "
        "before does not count.",
        rich_help_panel=_HOW_LONG,
    ),
]
Confidence = Annotated[
    float,
    typer.Option(
        callback=require_finite,
        min=0.5,
        max=0.9999,
        metavar="SHARE",
        help="With which an interval holds, and a gate that is held.",
        rich_help_panel=SURVEY_DETAIL,
    ),
]
Gates = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        metavar="GATE",
        help="What a release has to hold: rate, kernel-rate, failure-rate or accuracy-drop, a "
        "limit, and perhaps a part of the survey, as in 'rate<0.01', 'kernel-rate<1% under fog', "
        "'accuracy-drop<0.005 under noise at severity 3' or 'rate<0.02 for group NAME'; may be "
        "given several times. The device is asked until all are decided; exit code 1 unless all "
        "hold.",
        rich_help_panel=_JUDGED,
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="An earlier survey of the same inputs, conditions and run seed: say what has changed "
        "since.",
        rich_help_panel=_JUDGED,
    ),
]
BaselineLiesAt = Annotated[Path | None, typer.Option(metavar="PATH", hidden=True)]
"""Where the earlier survey lies that a fleet has sent a copy of, which is what a survey records."""

Findings = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Deviating inputs that are stored and verified, for `edgeflare explain`, `replay`, "
        "`export` and `repair`: at most one for each input.",
        rich_help_panel=SURVEY_DETAIL,
    ),
]
Rare = Annotated[
    bool,
    typer.Option(
        "--rare",
        help="Estimate after all else how often deviations happen that are too rare to be seen: "
        "by multilevel splitting on the host, severities drawn from 1 to 5, whatever --severities "
        "says.",
        rich_help_panel=SURVEY_DETAIL,
    ),
]
RareQueries = Annotated[
    int | None,
    typer.Option(
        min=100,
        metavar="N",
        help="Ask the device about N times more for --rare; each shell between two thresholds "
        "takes about 45 at least, however small N is.",
        show_default=f"{RARE_QUERIES}",
        rich_help_panel=SURVEY_DETAIL,
    ),
]
Show = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a contact sheet of some inputs under the conditions, and survey nothing.",
        rich_help_panel=SURVEY_DETAIL,
    ),
]


def severities_of(conditions: str | None, severities: str | None) -> tuple[int, ...]:
    """Return the severities that are surveyed.

    Args:
        conditions: what was said with --conditions, or None.
        severities: what was said with --severities, or None.

    Raises:
        UserError: they are none, or there is nothing that has any.

    """
    if severities is not None and conditions == NO_CONDITIONS:
        raise UserError(
            f"--severities {severities}: with --conditions {NO_CONDITIONS} nothing has a severity:"
            " leave one of them out"
        )
    return read_severities(ALL_SEVERITIES if severities is None else severities)


@dataclass(frozen=True, slots=True)
class SurveyEnds:
    """When the device was asked enough, and what is judged then."""

    precision: Precision = None
    device_queries: DeviceQueries = None
    time_limit: TimeLimit = None
    confidence: Confidence = CONFIDENCE
    gates: Gates = None
    findings: Findings = FINDINGS
    rare: Rare = False
    rare_queries: RareQueries = None

    def bounds(self) -> SurveyBounds:
        """Return what was asked.

        Raises:
            UserError: --rare is missing.

        """
        given = asdict(self)
        return SurveyBounds.asked(time_limit_seconds=given.pop("time_limit"), **given)
