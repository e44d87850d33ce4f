"""Command-line options of a conformance run: which operators, how many models, how long."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from edgeflare.cli.option_values import complete_device

_WHAT: Final = "What is tried"
_HOW_LONG: Final = "How long"
_JUDGED: Final = "What is judged"

DEFAULT_DEVICE: Final = "emulated-builtin"

DEFAULT_SECONDS: Final = 600.0
"""Seconds of a run for which neither a time nor a number of models is given."""


class Drawing(str, Enum):
    """How models are drawn."""

    UNIFORM = "uniform"
    MEMO = "memo"


Devices = Annotated[
    list[str],
    typer.Option(
        metavar="NAME",
        help="A profile (`edgeflare devices list`), adb://[SERIAL], ssh://[USER@]HOST, or "
        "grpc://HOST:PORT of a running agent; NAME/all or emulated-all is each kernel set, in one "
        "table. With --fleet a class of devices; again for each further class, which has a run of "
        "its own.",
        autocompletion=complete_device,
    ),
]
Ops = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Operators, separated by commas: CONV_2D,ADD. By default all; --list says which.",
        rich_help_panel=_WHAT,
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="TYPES",
        help="Types of operators, separated by commas: float32,int8,uint8,int16x8,dynamic. By "
        "default all.",
        rich_help_panel=_WHAT,
    ),
]
From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="MODEL|PAIR",
        help="Begin with the operators of this model, or of a pair's compressed one, as they stand,"
        " their shapes, parameters, weights and scales; then what is near them. Only its operators"
        " are tried.",
        rich_help_panel=_WHAT,
    ),
]
Graphs = Annotated[
    bool | None,
    typer.Option(
        "--graphs/--no-graphs",
        help="Try nothing but graphs of operators that are right alone and may be wrong together:"
        " pairs, and then graphs of up to ten. With --no-graphs, nothing but single operators.",
        show_default="operators, then graphs; with --models operators alone",
        rich_help_panel=_WHAT,
    ),
]
Draw = Annotated[
    Drawing,
    typer.Option(
        help="How models are drawn: uniform, evenly over operators and types; memo, by the loop of "
        "MEMO over graphs of up to eight operators.",
        rich_help_panel=_WHAT,
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="How long at most, shrinking included: 90s, 10m, 1h.",
        show_default="10m, unless --models is given",
        rich_help_panel=_HOW_LONG,
    ),
]
Models = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Draw N models; what fails is looked into with several times as many. With this alone "
        "the findings depend on nothing but the run seed.",
        rich_help_panel=_HOW_LONG,
    ),
]
RngSeed = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="The run seed.", rich_help_panel=_HOW_LONG),
]
Accepted = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Findings that are accepted: they are listed, and do not count for the exit code. "
        "`edgeflare report RUN --accepted` writes those of a run to RUN/accepted.toml.",
        rich_help_panel=_JUDGED,
    ),
]
Matrix = Annotated[
    bool,
    typer.Option(
        "--matrix",
        help="Write a table of operators, types and all kernel sets of this host, as data and as a"
        " page: how many of the same models are exact, a step off, wrong, refused or crash. With"
        " --versions those of released versions of the runtime, too.",
    ),
]
List = Annotated[
    bool,
    typer.Option(
        "--list",
        help="List operators, their types and parameters, and try nothing.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print conform.json, or with --list the list as JSON.")
]
