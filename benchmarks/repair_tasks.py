"""Repair pairs of several tasks, and count what deviates of inputs that nothing chose on.

    python benchmarks/repair_tasks.py PAIR … --out runs/repair-tasks -- OPTIONS

Each pair is repaired once, by `edgeflare repair` with OPTIONS, such as `--rng-seed 1`; one that
--out holds already is not repaired again. The inputs are those that judged the repair: no
candidate was fitted to them, or chosen by them. The table is Markdown; *measured* is the mean of
the task's own measure on these inputs, such as the IoU of masks, where it has one; processor time
and memory are those of the command and its processes together.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from edgeflare.models.pair import load_pair
from edgeflare.repair.judging.judgement import Figures, Judgement
from edgeflare.repair.repair_document import RepairDocument, read_repair
from edgeflare.run.run_directory import RunDirectory
from edgeflare.statistics.binomial import sign_test

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from process_tree import run

DEVICE = "emulated-xnnpack"


def main() -> int:
    arguments = parse()
    print(
        "| pair | task | seeds | chosen | time | deviating | mended, broken | p | measured |"
        " CPU, memory |\n|---|---|--:|---|--:|--:|--:|--:|--:|--:|"
    )
    for pair in arguments.pairs:
        out = arguments.out / pair.name
        cost = "" if (out / "repair.json").exists() else repair(pair, out, arguments.options)
        if (out / "repair.json").exists():
            print(row(pair, read_repair(RunDirectory(out)), cost), flush=True)
        else:
            print(f"| {pair.name} | {cost} | | | | | | | | |", flush=True)
    return 0


def repair(pair: Path, out: Path, options: Sequence[str]) -> str:
    """Repair a pair, and return what that cost; where it was refused, the line that says so."""
    command = [sys.executable, "-m", "edgeflare", "repair", str(pair), "--device", DEVICE]
    command += ["--trust", "--out", str(out), *options]
    with TemporaryFile("w+") as said:
        cost = run(command, said)
        if cost.status:
            said.seek(0)
            return said.read().strip().splitlines()[-1]
    return str(cost)


def row(folder: Path, document: RepairDocument, cost: str) -> str:
    """Return the line of a repair."""
    task, chosen = load_pair(folder, trust=True).interface.task, document.chosen or document.why
    if document.judged is None:
        return f"| {folder.name} | {task} | | {chosen} | | | | | | {cost} |"
    sets = document.judged.by_set.values()
    mended, broken = (sum(one.mended for one in sets), sum(one.broken for one in sets))
    ratio = next(one.latency_ratio for one in document.candidates if one.name == document.chosen)
    cells = (
        folder.name,
        task,
        f"{document.seeds.fit + document.seeds.choose + document.seeds.judge}",
        f"`{chosen}`" + ("" if document.written else ", none written"),
        "" if ratio is None else f"× {ratio:.2f}",
        deviating(document.judged),
        f"{mended}, {broken}",
        f"{sign_test(mended, broken):.1g}",
        " → ".join(measured([getattr(one, when) for one in sets]) for when in ("before", "after")),
        cost,
    )
    return f"| {' | '.join(cells)} |"


def deviating(judgement: Judgement) -> str:
    sets = judgement.by_set.values()
    before, after = (
        sum(getattr(one, when).deviating for one in sets) for when in ("before", "after")
    )
    return f"{before:,} → {after:,} of {sum(one.after.inputs for one in sets):,}"


def measured(figures: Sequence[Figures]) -> str:
    """Return the mean of the task's own measure over sets; a dash where it has none."""
    known = [(one.measured, one.inputs) for one in figures if one.measured is not None]
    if not known:
        return "–"
    return f"{sum(mean * asked for mean, asked in known) / sum(asked for _, asked in known):.3f}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="+", type=Path, help="folders of pairs")
    parser.add_argument("--out", type=Path, default=Path("runs/repair-tasks"))
    given, _, options = " ".join(sys.argv[1:]).partition(" -- ")
    arguments = parser.parse_args(given.split())
    arguments.options = options.split()
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
