"""Repairs of pairs by `edgeflare repair`, judged on images that they have never seen.

    python benchmarks/repair_targets.py PAIRS_FOLDER --images NAME=NPZ … --out runs/targets

Each pair that --images names is repaired in four ways: for a target that computes in float, with
+5% bytes and +5% time at most and with any, for one of integers alone with +1% bytes and +5% time
at most, and in place. The written files are
judged on all the images, and on near-boundary inputs made from some of them, on each --device; they
are made for the first. Repairs are kept in --out, and none is made twice. With --pool the counts of
some pairs are added up, too. The tables are Markdown; a cell has the count before and after.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.device_judgement import judged_on
from edgeflare.repair.judging.judgement import (
    SetAside,
    SetJudgement,
    candidate_answers,
    judged,
)
from edgeflare.repair.judging.judgement_inputs import FRESH, TIGHT, WIDE, JudgedSet, SetName
from edgeflare.statistics.binomial import sign_test
from edgeflare.trust import granted
from judged_images import JudgedImages, judged_images

WAYS = {
    "float": ("--target", "float"),
    "any-cost": ("--target", "float", "--max-size", "none", "--max-latency", "none"),
    "int8-only": ("--target", "int8-only", "--max-size", "+1%", "--max-latency", "+5%"),
    "in-place": ("--in-place",),
}
HEADER = "pair | way, run seed | chosen | dev | big | strict | mended, broken, p | tight | wide"
MORE = "right, p | foretold | KiB | time"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A repair that was made.

    Attributes:
        pair: name of the pair.
        way: a key of `WAYS`.
        rng_seed: of the repair.
        folder: has its repair.json.

    """

    pair: str
    way: str
    rng_seed: int
    folder: Path

    @property
    def document(self) -> dict[str, Any]:
        """Its repair.json."""
        document: dict[str, Any] = json.loads((self.folder / "repair.json").read_bytes())
        return document

    @property
    def file(self) -> Path | None:
        """The repaired model; None where none surely gains."""
        file = self.folder / "repaired.tflite"
        return file if file.is_file() else None


@dataclass(frozen=True, slots=True)
class Row:
    """What is counted of one repair.

    Attributes:
        counts: before and after, by the name of a column.
        mended: images that no longer deviate.
        broken: images that begin to deviate.

    """

    repaired: Repaired
    counts: dict[str, tuple[int, int]]
    mended: int
    broken: int
    more: tuple[str, ...]

    def cells(self) -> list[str]:
        """Return the cells of the counts and of the sign test."""
        p = sign_test(self.mended, self.broken)
        counts = {name: f"{before} → {after}" for name, (before, after) in self.counts.items()}
        return [
            *(counts[name] for name in ("dev", "big", "strict")),
            f"{self.mended}, {self.broken}, {p:.1g}",
            *(counts[name] for name in (TIGHT, WIDE)),
        ]


def main() -> int:
    arguments = parse()
    images = dict(one.split("=", 1) for one in arguments.images)
    pools = [one.split(",") for one in arguments.pool]
    trust = granted(arguments.trust)
    made = [one for name in images for one in repairs(name, arguments)]
    for device in arguments.device:
        print(f"**{device}**\n\n| {HEADER} | {MORE} |\n" + "|---" * 13 + "|", flush=True)
        rows = []
        for name, path in images.items():
            with ExitStack() as stack:
                pair, profile = load_pair(arguments.folder / name), find_profile(device, trust)
                judges = judged_images(pair, Path(path), profile, stack, limit=arguments.limit)
                for one in made:
                    if one.pair == name:
                        rows.append(row(one, judges))
                        print(line(rows[-1]), flush=True)
        for pool in pools:
            print("\n".join(pooled(rows, pool)), flush=True)
        print()
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds pair folders")
    parser.add_argument("--images", nargs="+", required=True, help="NAME=NPZ, images of a pair")
    parser.add_argument("--limit", type=int, help="take the first so many images only")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--rng-seeds", nargs="+", type=int, default=[0], help="of the repairs")
    parser.add_argument("--device", nargs="+", default=["emulated-xnnpack"])
    parser.add_argument("--trust", action="store_true", help="of profiles in device_profiles/")
    parser.add_argument("--pool", nargs="+", default=[], help="NAME,NAME: pairs to add up")
    parser.add_argument("--out", type=Path, default=Path("runs/targets"))
    return parser.parse_args()


def repairs(name: str, arguments: argparse.Namespace) -> Iterator[Repaired]:
    """Repair a pair in each way with each run seed, where that is not done yet."""
    for way in arguments.ways:
        for rng_seed in arguments.rng_seeds:
            one = Repaired(name, way, rng_seed, arguments.out / name / f"{way}-{rng_seed}")
            if not (one.folder / "repair.json").is_file():
                options = ("--rng-seed", str(rng_seed), "--device", arguments.device[0])
                command = ("repair", arguments.folder / name, "--out", one.folder, *options)
                said = [sys.executable, "-m", "edgeflare", *map(str, command), *WAYS[way]]
                subprocess.run(said, check=True, stdout=sys.stderr)
            yield one


def row(one: Repaired, judges: JudgedImages) -> Row:
    """Judge a repair; one that wrote nothing has the figures of the model before."""
    file = one.file or judges.opened.pair.compressed
    content = file.read_bytes()
    found = judged(content, judges.opened, judges.sets)
    if isinstance(found, SetAside):
        raise UserError(f"{file}: {found.reason}")
    fresh = found.by_set[FRESH]
    counts = {
        "dev": (fresh.before.deviating, fresh.after.deviating),
        "big": (fresh.before.wide_margin, fresh.after.wide_margin),
        "strict": (fresh.before.strict, fresh.after.strict),
    }
    for name in (TIGHT, WIDE):
        some = found.by_set[name]
        counts[name] = some.before.deviating, some.after.deviating
    cost = one.document["repaired"]
    more = (
        accuracy(fresh),
        foretold(content, judges),
        f"{len(content) / 1024:.1f}",
        "–" if cost is None else f"× {cost['ratio']:.2f}",
    )
    return Row(one, counts, fresh.mended, fresh.broken, more)


def accuracy(fresh: SetJudgement) -> str:
    """Return the right answers before and after, and McNemar's p."""
    if fresh.accuracy is None:
        return "–"
    before, after = fresh.before, fresh.after
    return f"{before.right} → {after.right} of {after.labelled}, {fresh.accuracy.p:.2g}"


def foretold(content: bytes, judges: JudgedImages) -> str:
    """Return on how many near-boundary inputs the device gives the label that the host does."""
    near: dict[SetName, JudgedSet] = {TIGHT: judges.sets[TIGHT], WIDE: judges.sets[WIDE]}
    answers = candidate_answers(content, judges.opened, near)
    if isinstance(answers, SetAside):
        return answers.reason
    try:
        there = judged_on(judges.opened.devices[0], content, judges.opened, near, answers)
    except UserError as refused:
        return f"refused: {refused}"
    return f"{there.same_labels} of {there.inputs}"


def line(one: Row) -> str:
    name, repaired = one.repaired.pair, one.repaired
    chosen = repaired.document["chosen"] if repaired.file else "nothing"
    cells = [name, f"{repaired.way}, {repaired.rng_seed}", chosen, *one.cells(), *one.more]
    return "| " + " | ".join(cells) + " |"


def pooled(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """Yield the counts of some pairs, added up by way and run seed."""
    ways = dict.fromkeys((one.repaired.way, one.repaired.rng_seed) for one in rows)
    for way, rng_seed in ways:
        some = [
            one
            for one in rows
            if one.repaired.pair in names and one.repaired.way == way
            if one.repaired.rng_seed == rng_seed
        ]
        counts = {
            column: (
                sum(one.counts[column][0] for one in some),
                sum(one.counts[column][1] for one in some),
            )
            for column in some[0].counts
        }
        mended, broken = sum(one.mended for one in some), sum(one.broken for one in some)
        total = Row(some[0].repaired, counts, mended, broken, ())
        cells = [" + ".join(names), f"{way}, {rng_seed}", "", *total.cells(), "", "", "", ""]
        yield "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(str(error))
