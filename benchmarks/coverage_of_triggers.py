"""Whether neuron coverage tells anything about deviations: what a search's triggers cover.

    python benchmarks/coverage_of_triggers.py PAIR… --out runs/coverage

Each pair is searched from its first --seeds seeds by `boundary`, with --coverage. The first lines
of a pair are the table of its run: the share of the neurons that the seeds cover, seeds and
triggers, and seeds and as many other seeds. In the last line of each arm, one image's coverage is
what tells triggers from their seeds: the AUC, .5 where it tells nothing. Of it --without-last
leaves neurons out, such as the scores and probabilities of the classes, 20 of ten, in which a
trigger is seen to lie at a boundary, where two of them are high, as other inputs do. Each run is
kept in --out, and none is made twice. The table is Markdown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.coverage_phase import CapturedArm
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.cli.option_values import read_thresholds
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.models.pair import load_pair
from edgeflare.pages.markdown import markdown_table
from edgeflare.pages.page import Table
from edgeflare.report.run_page import coverage_blocks
from edgeflare.run.load_document import load_document
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument

Shares = NDArray[np.float64]


def main() -> int:
    arguments = parse()
    thresholds = read_thresholds("--coverage", arguments.coverage)
    for pair in arguments.pairs:
        directory = RunDirectory(arguments.out / pair.resolve().name)
        search(pair, directory, arguments)
        document = load_document(directory)
        table = next((one for one in coverage_blocks(document) if isinstance(one, Table)), None)
        if table is None:
            raise UserError(f"{directory.path} was made without --coverage: remove it")
        print(f"\n{pair.resolve().name}\n")
        with ExitStack() as stack:
            plan = Plan("boundary", Goal(), (arguments.device,), first=arguments.seeds)
            opened = open_pair(load_pair(pair), plan, [find_profile(arguments.device)], stack)
            last = arguments.without_last
            told = [
                (f"{arm}, AUC of one image", "triggers against seeds", *map("{:.2f}".format, found))
                for arm in opened.panel.arms
                for found in (aucs(opened, arm, thresholds, last, document, directory),)
            ]
        print(
            markdown_table(table.header, [*(list(map(str, row)) for row in table.rows), *told]),
            flush=True,
        )
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, nargs="+", metavar="PAIR")
    parser.add_argument("--seeds", type=int, default=60, help="first seeds of each")
    parser.add_argument("--coverage", default="0,.25,.5,.75", help="thresholds")
    parser.add_argument("--without-last", type=int, default=0, metavar="N", help="of the AUC")
    parser.add_argument("--device", default="emulated-xnnpack")
    parser.add_argument("--out", type=Path, default=Path("runs/coverage"))
    return parser.parse_args()


def search(pair: Path, directory: RunDirectory, arguments: argparse.Namespace) -> None:
    """Search a pair, where that is not done yet."""
    if directory.document.is_file():
        return
    options = {
        "--out": directory.path,
        "--first": arguments.seeds,
        "--coverage": arguments.coverage,
        "--device": arguments.device,
        "--fail-on": "none",
    }
    words = [str(word) for option in options.items() for word in option]
    command = [sys.executable, "-m", "edgeflare", "search", str(pair), "--overwrite"]
    subprocess.run([*command, *words], check=True, stdout=sys.stderr)


def aucs(
    opened: OpenedPair,
    arm: Arm,
    thresholds: tuple[float, ...],
    without_last: int,
    document: RunDocument,
    directory: RunDirectory,
) -> Shares:
    """Return, at each threshold, the odds that a trigger covers more neurons than a seed."""

    def refuse(index: int) -> None:
        raise RuntimeError(f"device {index} was lost")

    with closing(CapturedArm(opened, arm, thresholds, refuse)) as captured:

        def shares(paths: list[tuple[int, str]]) -> Shares:
            covered = (captured.covered(directory.load_input(path), at) for at, path in paths)
            return np.stack([one[:, : one.shape[1] - without_last].mean(1) for one in covered])

        triggers = shares([(one.seed_id, one.file) for one in document.findings])
        seeds = shares([(one.seed_id, one.seed_file) for one in document.findings])
    above = triggers[:, None] > seeds[None]
    ties = triggers[:, None] == seeds[None]
    return np.asarray((above + ties / 2.0).mean(axis=(0, 1)))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    except EdgeFlareError as error:
        sys.exit(str(error))
