"""Make the picture of docs/fleet.md: how far one head goes, by benchmarks/fleet_simulation.py.

.venv/bin/python docs/pictures/fleet.py                                  (needs the extra `plots`)
"""

from __future__ import annotations

import argparse
import re
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "support")]

from benchmarks.fleet_simulation import SIZES, UNIT_MINUTES, fleets, scenario  # noqa: E402

from simulated_fleet import FleetFigures, ServiceTimes, SimulatedFleet  # noqa: E402

SHOWN = 5
"""Minutes of the units for which it is shown what is busy beside the devices."""

PARTS = {"head's thread": "head", "collector of reports": "collector", "head's link": "link"}
"""What may saturate, and its figure."""


def main() -> None:
    """Read the command line, and write the picture."""
    parser = argparse.ArgumentParser(description="Make the picture of simulated fleets.")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="devices at most")
    parser.add_argument("--out", type=Path, help="by default beside this file")
    options = parser.parse_args()
    sizes = [size for size in SIZES if size <= options.most]
    figures = {
        (size, minutes): SimulatedFleet(scenario(size, minutes), ServiceTimes()).run()
        for size, minutes in fleets(options.most)
    }
    out = options.out or Path(__file__).with_suffix(".svg")
    out.write_text(svg(draw(figures, sizes)))


def svg(figure: Figure) -> str:
    """Return a figure with its texts as text, and each path on a line."""
    mpl.rcParams["svg.hashsalt"] = "fleet"
    mpl.rcParams["svg.fonttype"] = "none"
    written = StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(written, format="svg", metadata=nothing)
    paths = re.sub(r" *\n(?=[MLHVCQz\"]|[ ]*[/]?>)", " ", written.getvalue())
    return re.sub(r">\n *(?=<(?:/g|/defs|use|path))", ">", paths).rstrip() + "\n"


def draw(figures: dict[tuple[int, int], FleetFigures], sizes: list[int]) -> Figure:
    """Draw how busy the devices are, how busy all else is, and what the merge takes."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    devices, head, merge = figure.subplots(1, 3)
    for minutes in UNIT_MINUTES:
        busy = {size: one.busy_in_all for (size, units), one in figures.items() if units == minutes}
        devices.plot(
            list(busy), list(busy.values()), "o-", markersize=4, label=f"units of {minutes} min"
        )
    searched = [figures[size, SHOWN].busy for size in sizes]
    devices.plot(sizes, searched, "k:", label=f"{SHOWN} min, without the screening")
    devices.set_title("Devices that do what is kept")
    for name, field in PARTS.items():
        shares = [min(1.0, getattr(figures[size, SHOWN], field)) for size in sizes]
        head.plot(sizes, shares, "o-", markersize=4, label=name)
    head.set_title(f"What is busy beside them, units of {SHOWN} min")
    merge.plot(sizes, [figures[size, SHOWN].merge / 60 for size in sizes], "o-", markersize=4)
    merge.set_title("Minutes of the merge at the end")
    merge.set_yscale("log")
    merge.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for panel in (devices, head, merge):
        _set_devices(panel)
    for panel in (devices, head):
        panel.set_ylim(0, 1.03)
        panel.yaxis.set_major_formatter(PercentFormatter(1.0))
        panel.yaxis.set_major_locator(MaxNLocator(4))
        panel.legend(frameon=False, fontsize=8)
    return figure


def _set_devices(panel: Any) -> None:
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_minor_locator(NullLocator())
    panel.set_xlabel("devices")
    panel.title.set_fontsize(10)
    panel.grid(alpha=0.3)


if __name__ == "__main__":
    main()
