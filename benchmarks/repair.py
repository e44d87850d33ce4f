"""Repairers side by side, and the repaired models searched again: the paper's Tables 7 and 8.

    python benchmarks/repair.py PAIRS_FOLDER --test lenet5_mnist_int8=mnist_test.npz …

For each pair: a search for strict triggers, `edgeflare repair --method shifts` on it with the test
images that --test names, and the search again; then the first seeds before and after with `dflare`.
The repairers of Table 7 are cross-validated on the seeds to fit with and what was made of them.
Every step is kept in --out and none is done twice, so the script can be stopped with Ctrl-C and
started again.
The tables are Markdown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

NAMES = {
    "perceptron": "the paper's perceptron",
    "perceptron-abstaining": "the same, abstaining",
    "second-class": "second class, always",
    "shifts-mixture-only": "shifts, mixture only",
    "shifts": "shifts (the default)",
}
BOUND = ("--max-linf", "none", "--max-l2", "none")
"""Of the paper's search, which has no bounds."""


def main() -> int:
    arguments = parse()
    tests = dict(one.split("=", 1) for one in arguments.test)
    found = {}
    for file in sorted(arguments.folder.glob("*/pair.toml")):
        pair = file.parent
        if pair.name not in (arguments.pairs or [pair.name]):
            continue
        out = arguments.out / pair.name
        found[pair.name] = (
            repaired(pair, out, tests.get(pair.name)),
            searched_again(pair, out, arguments.dflare_seeds),
        )
        print(f"{pair.name}: done", file=sys.stderr, flush=True)
    print(table_7(found), table_8(found), sep="\n\n")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds pair folders")
    parser.add_argument("--pairs", nargs="+", help="names of the pairs; all by default")
    parser.add_argument("--test", nargs="+", default=[], help="NAME=PATH, test images of a pair")
    parser.add_argument("--dflare-seeds", type=int, default=60, help="first seeds of each pair")
    parser.add_argument("--out", type=Path, default=Path("runs/repair"))
    return parser.parse_args()


def repaired(pair: Path, out: Path, test: str | None) -> dict[str, Any]:
    """Return repair.json of a pair."""
    search(pair, out / "before")
    document = out / "repaired" / "repair.json"
    if not document.is_file():
        options = [] if test is None else ["--test", test]
        options += ["--method", "shifts", "--search-again"]
        call("repair", out / "before", "--out", document.parent, *options)
    return read(document)


def searched_again(pair: Path, out: Path, seeds: int) -> list[dict[str, Any]]:
    """Return the totals of `dflare` before and after; nothing where no repairer was written."""
    after = out / "repaired"
    if not (after / "pair.toml").is_file():
        return []
    options = ("--strategy", "dflare", "--first", str(seeds), *BOUND)
    return [
        search(pair, out / "dflare-before", *options)["totals"],
        search(after, out / "dflare-after", *options)["totals"],
    ]


def search(pair: Path, run: Path, *options: str) -> dict[str, Any]:
    if not (run / "run.json").is_file():
        device = ("--device", "emulated-xnnpack", "--shrink", "0", "--fail-on", "none")
        call("search", pair, "--out", run, "--overwrite", *device, *options)
    return read(run / "run.json")


def call(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "edgeflare", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=sys.stderr)


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def table_7(found: dict[str, Any]) -> str:
    lines = [
        "| pair, repairer | repair | inducing | improvement | induced on agreeing | "
        "net, points (95 %) | as they come |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (document, _) in found.items():
        (candidate,) = document["candidates"]
        shifts = candidate["details"]["shifts"]
        ceiling = f"ceiling {100 * shifts['ceiling']:+.1f}"
        lines.append(f"| **{name}** ({outcome(document)}; {ceiling}) | | | | | | |")
        for key, row in shifts["repairers"].items():
            net, unled = row["net"], row["unguided_ratio"]
            cells = (
                f"{row['repair_ratio']:.1%}",
                f"{row['inducing_ratio']:.1%}",
                f"{row['improvement_ratio']:.1%}",
                f"{row['induced_agreeing']:.1%}",
                f"{100 * net['value']:+.1f} ({100 * net['low']:+.1f} … {100 * net['high']:+.1f})",
                "–" if unled is None else f"× {unled:.2f}",
            )
            lines.append(f"| {NAMES[key]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def outcome(document: dict[str, Any]) -> str:
    """Return whether a model is written, and how many inputs that judge deviate."""
    said = "written" if document["written"] else "none written"
    judged = document["judged"] or {}
    counted = [
        f"{name} {one['before']['deviating']} → {one['after']['deviating']}"
        for name, one in judged.items()
    ]
    return ", ".join((said, *counted))


def table_8(found: dict[str, Any]) -> str:
    lines = [
        "| pair | `boundary`: success, mean queries | repaired | `dflare`: … | repaired |",
        "|---|---|---|---|---|",
    ]
    for name, (document, dflare) in found.items():
        again = document["search"]
        if again is None or not dflare:
            continue
        cells = map(figures, (again["before"], again["after"], *dflare))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figures(totals: dict[str, Any]) -> str:
    mean = totals["mean_queries"]
    text = f"{totals['success_rate']:.1%}, {'–' if mean is None else f'{mean:.1f}'}"
    deviating = totals["deviating_seeds"]
    return f"{text} ({deviating} seeds deviate)" if deviating else text


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
