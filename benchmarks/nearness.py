"""How near to their seeds the findings of runs lie: a table, curves, and a sheet to look at.

    python benchmarks/nearness.py RUN... [--figure FILE.svg] [--sheet FILE.png]

For each run: the PSNR of the findings, the share of all seeds that have a deviating input within a
distance, the area under that curve, and how fast the refinement was beside the search. The sheet
shows, in a row for each run, seeds above the inputs that deviate, one for each distance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import PSNR
from edgeflare.errors import EdgeFlareError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.report.nearness_figure import draw_nearness
from edgeflare.run.load_document import load_document
from edgeflare.run.nearness import levels_db, nearness_db, nearness_of
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument

SHEET_DB = (45.0, 40.0, 35.0, 30.0, 27.5, 25.0, 22.5, 20.0)
"""Distances of the sheet's columns; each shows the finding that is the nearest to it."""

NEAR_ENOUGH_DB = 2.0
"""How far a finding may be from its column's distance; an empty place tells that there is none."""

SIDE, GAP, HEAD = 84, 8, 22
"""Pixels: of an image on the sheet, between images, and of the line of text above."""

Pixels = NDArray[np.uint8]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--figure", type=Path, metavar="SVG", help="draw the curves")
    parser.add_argument("--sheet", type=Path, metavar="PNG", help="draw seeds and triggers")
    arguments = parser.parse_args()
    documents = {run: load_document(RunDirectory(run)) for run in arguments.runs}
    print_table(list(documents.values()))
    if arguments.figure:
        draw_nearness(
            {document.pair.name: document for document in documents.values()},
            arguments.figure,
        )
    if arguments.sheet:
        rows = [row_of(RunDirectory(run), document) for run, document in documents.items()]
        sheet = np.concatenate([heading(), *rows])
        write_atomically(arguments.sheet, cv2.imencode(".png", sheet)[1].tobytes())


def print_table(documents: Sequence[RunDocument]) -> None:
    levels = [f"{level:g} dB" for level in levels_db(PSNR)]
    columns = ("pair", "seeds", "shrink", "median dB", *levels, "area", "refined/s", "searched/s")
    print("| " + " | ".join(columns) + " |")
    print("|---" + "|--:" * (len(columns) - 1) + "|")
    for document in documents:
        totals = document.totals
        near = nearness_of(document.deviations, totals.seeds)
        refined = sum(one.refined.queries for one in document.findings if one.refined)
        row = (
            document.pair.name,
            str(totals.seeds),
            str(document.plan.shrink),
            f"{np.median(distances(document)):.1f}",
            *(f"{one.share:.0%}" for one in near.db),
            f"{near.area:.3f}",
            f"{refined / max(totals.refine_seconds, 1e-9):,.0f}",
            f"{totals.queries / max(totals.wall_seconds, 1e-9):,.0f}",
        )
        print("| " + " | ".join(row) + " |")


def distances(document: RunDocument) -> list[float]:
    return [value for one in document.findings if (value := nearness_db(one)) is not None]


def heading() -> Pixels:
    line = np.full((HEAD, len(SHEET_DB) * (SIDE + GAP) + GAP, 3), 255, np.uint8)
    for column, level in enumerate(SHEET_DB):
        put(line, f"{level:g} dB", column)
    return line


def row_of(directory: RunDirectory, document: RunDocument) -> Pixels:
    row = np.full((HEAD + 2 * (SIDE + GAP), len(SHEET_DB) * (SIDE + GAP) + GAP, 3), 255, np.uint8)
    put(row, document.pair.name, 0)
    for column, level in enumerate(SHEET_DB):
        entry = min(document.findings, key=lambda one: abs((nearness_db(one) or 0.0) - level))
        if abs((nearness_db(entry) or 0.0) - level) > NEAR_ENOUGH_DB:
            continue
        for line, name in enumerate((entry.seed_file, entry.file)):
            top, left = HEAD + line * (SIDE + GAP), GAP + column * (SIDE + GAP)
            row[top : top + SIDE, left : left + SIDE] = shown(directory.load_input(name))
    return row


def shown(image: Pixels) -> Pixels:
    """Return an image as OpenCV writes it, (SIDE, SIDE, 3), its pixels left sharp."""
    code = cv2.COLOR_GRAY2BGR if image.shape[2] == 1 else cv2.COLOR_RGB2BGR
    colours = cv2.cvtColor(image[:, :, :3] if image.shape[2] > 3 else image, code)
    return np.asarray(cv2.resize(colours, (SIDE, SIDE), interpolation=cv2.INTER_NEAREST), np.uint8)


def put(canvas: Pixels, text: str, column: int) -> None:
    at = (GAP + column * (SIDE + GAP), HEAD - 7)
    cv2.putText(canvas, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.45, (60, 60, 60), 1, cv2.LINE_AA)


if __name__ == "__main__":
    try:
        main()
    except EdgeFlareError as error:
        sys.exit(f"nearness: {error}")
