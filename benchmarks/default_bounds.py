"""How far from their seeds the findings of runs lie: the percentiles that default bounds keep to.

    edgeflare search PAIR --strategy dflare-published --max-linf none --max-l2 none --out RUN
    python benchmarks/default_bounds.py RUN... [--percentile P]

A domain's default bounds are no looser than the 90th percentile of what the published loop finds
without bounds. For each run: the number of findings, and the median and the percentile of the
largest change and of the root mean square of the change, both in levels of the domain, and of the
nearness in dB. Where findings were refined, the first two are of what the search found.
"""

from __future__ import annotations

import argparse
import sys
from math import sqrt
from pathlib import Path

import numpy as np

from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.run.load_document import load_document
from edgeflare.run.nearness import measure_name, nearness_db
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--percentile", type=float, default=90.0, metavar="P")
    arguments = parser.parse_args()
    high = f"{arguments.percentile:g} %"
    columns = (
        *("run", "pair", "findings", "L∞ median", high),
        *("rms median", high, "measure", "median, dB"),
    )
    print("| " + " | ".join(columns) + " |")
    print("|---|---" + "|--:" * (len(columns) - 2) + "|")
    for run in arguments.runs:
        print("| " + " | ".join(row_of(run, arguments.percentile)) + " |")


def row_of(run: Path, percentile: float) -> tuple[str, ...]:
    directory = RunDirectory(run)
    document = load_document(directory)
    found = [one for one in document.findings if one.kind == "deviation"]
    if not found:
        raise UserError(f"{run} has no findings: give runs of a search that found some")
    values = directory.load_input(found[0].file).size
    linf, l2 = np.array([distances(one) for one in found]).T
    near = [value for one in found if (value := nearness_db(one)) is not None]
    return (
        str(run),
        document.pair.name,
        str(len(found)),
        *shown(linf, percentile),
        *shown(l2 / sqrt(values), percentile),
        measure_name(document),
        f"{np.median(near):.1f}" if near else "–",
    )


def distances(one: Finding) -> tuple[float, float]:
    distortion = one.distortion if one.refined is None else one.refined.distortion_before
    return distortion.linf, distortion.l2


def shown(figures: np.ndarray, percentile: float) -> tuple[str, str]:
    return f"{np.median(figures):,.1f}", f"{np.percentile(figures, percentile):,.1f}"


if __name__ == "__main__":
    try:
        main()
    except EdgeFlareError as error:
        sys.exit(f"default_bounds: {error}")
