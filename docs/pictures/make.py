"""Make the picture of the README: a run, as `edgeflare report` shows it, as an SVG.

make demo
.venv/bin/python docs/pictures/make.py
"""

from __future__ import annotations

import argparse
import io
import re
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from edgeflare.pages.terminal import print_page
from edgeflare.report.run_page import run_page
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory

COLUMNS = 100


def main() -> None:
    """Read the command line, and write the picture."""
    parser = argparse.ArgumentParser(description="Make a picture of a run.")
    parser.add_argument("run", type=Path, nargs="?", default=Path("runs/demo"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("demo.svg"))
    options = parser.parse_args()
    options.out.write_text(picture(options.run), encoding="utf-8")


def picture(run: Path) -> str:
    """Return the SVG of a run; it is the same for the same run, and fetches nothing."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    page = run_page(load_document(RunDirectory(run)))
    # What ran where is the machine of whoever makes the picture.
    shown = [section for section in page.sections if section.id != "ran"]
    print_page(console, replace(page, sections=shown), str(run))
    svg = console.export_svg(title="make demo", unique_id="edgeflare")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # they are on the web


if __name__ == "__main__":
    main()
