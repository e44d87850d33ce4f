"""`edgeflare merge`: several runs of parts of the same seeds, made one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.console import Console
from edgeflare.cli.option_values import complete_run
from edgeflare.cli.quiet import Quiet, result
from edgeflare.cli.run_options import (
    AllowOtherHost,
    Overwrite,
    naming_other_host,
    with_option_groups,
)
from edgeflare.pages.facts import count_of
from edgeflare.report.run_page import print_run
from edgeflare.run.merge.merge_runs import merge_runs

Parts = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        help="Run directories of searches that differ in --seed-ids only; also that of their"
        " screening.",
        autocompletion=complete_run,
    ),
]
MergedRun = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="The merged run's directory, absent or empty."),
]


@with_option_groups
def merge(
    runs: Parts,
    out: MergedRun,
    overwrite: Overwrite = False,
    allow_other_host: AllowOtherHost = False,
    _quiet: Quiet = False,
) -> int:
    """Make one run of several that searched parts of the same seeds.

    The merged run is that which one search of all these seeds makes, but for its times and what
    was seen of the devices. `edgeflare search` goes on with it by --resume where a part was
    stopped, and measures what belongs to no seed (--test, --coverage); the other commands take it
    as any run. Seeds that several runs have must have led to the same.
    """
    console = Console(stderr=True)
    merging = f"merging {count_of(len(runs), 'run')}"
    with naming_other_host(), console.status(merging) as status:
        document = merge_runs(
            runs,
            out,
            overwrite=overwrite,
            allow_other_host=allow_other_host,
            copied=lambda n: status.update(f"{merging}: {count_of(n, 'finding')} copied"),
        )
    print_run(Console(), document, str(out))
    result(out)
    return 0
