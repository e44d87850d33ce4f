"""Make the picture of the README: a check, as `edgeflare report` shows it, as an SVG.

make demo
.venv/bin/python docs/pictures/make.py
"""

from __future__ import annotations

import argparse
import io
import re
from pathlib import Path

from rich.console import Console

from edgeflare.pages.terminal import print_page
from edgeflare.release.check_document import load_check
from edgeflare.release.check_page import check_page
from edgeflare.run.run_directory import CHECK_DOCUMENT

COLUMNS = 100


def main() -> None:
    """Read the command line, and write the picture."""
    parser = argparse.ArgumentParser(description="Make a picture of a check.")
    parser.add_argument("check", type=Path, nargs="?", default=Path("runs/demo"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("demo.svg"))
    options = parser.parse_args()
    options.out.write_text(picture(options.check), encoding="utf-8")


def picture(folder: Path) -> str:
    """Return the SVG of a check; it is the same for the same one, and fetches nothing."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    print_page(console, check_page(load_check(folder / CHECK_DOCUMENT)), str(folder))
    svg = console.export_svg(title="make demo", unique_id="edgeflare")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # they are on the web


if __name__ == "__main__":
    main()
