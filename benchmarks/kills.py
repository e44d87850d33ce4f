"""Kill the host, the agent and the workers many times, and see that no finding is lost.

    python benchmarks/kills.py --times 100

Each campaign is held against an undisturbed one, to the bit but for times, and no process may be
left running. The driver, and the ten kills of each that the tests do, are in
tests/support/campaign_kills.py.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from campaign_kills import Campaign, Victim, kill_many


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=100, help="kills of each (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments (default: 0)")
    options = parser.parse_args()
    console = Console()
    table = Table("killed", "times", "campaigns", "starts of the host", "findings", "seconds")
    with tempfile.TemporaryDirectory() as folder:
        expected = Campaign(Path(folder) / "undisturbed").run()
        for victim in get_args(Victim):
            began = time.monotonic()
            tally = kill_many(victim, options.times, Path(folder), expected, options.seed)
            killed = ", ".join(f"{role} {n}" for role, n in sorted(tally.kills.items()))
            figures = (tally.total, tally.campaigns, tally.starts, tally.findings)
            table.add_row(killed, *map(str, figures), f"{time.monotonic() - began:.0f}")
            console.print(f"{victim}: {tally.total} kills, nothing lost, doubled or left running")
    console.print(table)


if __name__ == "__main__":
    main()
