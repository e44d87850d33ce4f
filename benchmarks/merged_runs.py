"""Search pairs as a whole and in parts, merge the parts, and count in what the two differ.

    python benchmarks/merged_runs.py PAIR... --limit 4 --max-queries 20

Of each pair every strategy that fits it searches by every --find, with refinement and without. The
seeds are shared out at random among the parts. All that a run says and stores is compared but
times, health and canaries; see tests/support/run_content.py. Strategies that ask for gradients need
the extra `whitebox`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from called_commands import call_here
from edgeflare.core.goal import Find
from edgeflare.run.seed_ids import SeedIds
from edgeflare.strategies.strategy_registry import strategies
from run_content import content_differences, run_content

REFINED = ("--strengthen", "10", "--shrink", "10")
UNREFINED = ("--strengthen", "0", "--shrink", "0")


class NotFittingError(Exception):
    """A strategy does not fit a pair, or a search of it is refused."""


@dataclass
class Comparison:
    """A search of a pair, as a whole and in parts.

    Attributes:
        pair: the pair's folder.
        strategy: what searches.
        find: what is looked for.
        refined: whether findings are strengthened and shrunk.
        findings: of the whole.
        parts: the seeds of each part, as `--seed-ids` takes them.
        differences: where the merged run differs from the whole.
        refused: why the search was not made; empty where it was.

    """

    pair: Path
    strategy: str
    find: Find
    refined: bool
    findings: int = 0
    parts: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    refused: str = ""

    def command(self, options: argparse.Namespace) -> tuple[str | Path, ...]:
        """Return the search that all runs of the comparison have in common."""
        return (
            *("search", self.pair, "--strategy", self.strategy, "--find", self.find.value),
            *("--first", str(options.limit), "--max-queries", str(options.max_queries)),
            *(REFINED if self.refined else UNREFINED),
            *("--fail-on", "none", "--trust"),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PAIR", help="a pair's folder")
    parser.add_argument("--limit", type=int, default=4, help="seeds of each pair (default: 4)")
    parser.add_argument("--max-queries", type=int, default=20, help="for each (default: 20)")
    parser.add_argument("--parts", type=int, default=2, help="of each run (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="decides the partitions (default: 0)")
    parser.add_argument("--strategy", action="append", help="this one only; several times")
    options = parser.parse_args()
    console, began = Console(), time.monotonic()
    done = list(compared(options, Console(stderr=True)))
    console.print(_table(done))
    made = [one for one in done if not one.refused]
    apart = sum(len(one.differences) for one in made)
    console.print(
        f"{len(made)} searches as a whole and in parts, {sum(one.findings for one in made)}"
        f" findings, {apart} differences, {time.monotonic() - began:.0f} seconds"
    )


def compared(options: argparse.Namespace, console: Console) -> Iterator[Comparison]:
    """Yield each comparison once it is made."""
    rng = np.random.default_rng(options.seed)
    names = options.strategy or sorted(strategies())
    for pair, find in product(options.pairs, Find):
        with tempfile.TemporaryDirectory() as folder:
            screening = Path(folder) / "screening"
            for number, (name, refined) in enumerate(product(names, (False, True))):
                one = Comparison(pair, name, find, refined)
                try:
                    _compare(one, options, rng, screening, Path(folder) / str(number))
                except NotFittingError as error:
                    one.refused = str(error)
                console.print(
                    f"{pair.name} {name} {find.value} {refined}:"
                    f" {one.refused or f'{len(one.differences)} differences'}",
                    soft_wrap=True,
                )
                yield one


def _compare(
    one: Comparison,
    options: argparse.Namespace,
    rng: np.random.Generator,
    screening: Path,
    folder: Path,
) -> None:
    command = one.command(options)
    _call(*command, "--out", folder / "whole")
    if not screening.exists():
        _call(*command, "--screen-only", "--out", screening)
    whole = run_content(folder / "whole")
    seeds = whole["document"]["totals"]["seeds"]
    owners = np.arange(seeds) % options.parts
    rng.shuffle(owners)
    for part in range(min(options.parts, seeds)):
        one.parts.append(str(SeedIds.of(map(int, np.flatnonzero(owners == part)))))
        given = ("--seed-ids", one.parts[-1], "--screening", screening)
        _call(*command, *given, "--out", folder / str(part))
    parts = [folder / str(part) for part in range(len(one.parts))]
    _call("merge", *parts, "--out", folder / "merged")
    one.findings = len(whole["document"]["findings"])
    one.differences = content_differences(whole, run_content(folder / "merged"))


def _call(*arguments: str | Path) -> None:
    said = call_here(*arguments)
    if said.code == 2:
        raise NotFittingError(said.err.strip())
    if said.code != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {said.code}, {said.err}")


def _table(done: list[Comparison]) -> Table:
    table = Table("pair", "strategy", "find", "searches", "findings", "differences", "where")
    rows: dict[tuple[str, str, str], list[Comparison]] = {}
    for one in done:
        rows.setdefault((one.pair.name, one.strategy, one.find.value), []).append(one)
    for key, group in rows.items():
        made = [one for one in group if not one.refused]
        where = Counter(name for one in made for name in one.differences)
        said = "does not fit" if not made else ", ".join(where)
        counts = (len(made), sum(one.findings for one in made), where.total())
        table.add_row(*key, *map(str, counts), said)
    return table


if __name__ == "__main__":
    main()
