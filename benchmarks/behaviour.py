"""What EdgeFlare does at a commit, recorded so that another commit can be held to it.

    python benchmarks/behaviour.py record FOLDER [--python PYTHON] [--pairs DIR] [--only TEXT]
    python benchmarks/behaviour.py compare FOLDER OTHER

`record` runs the commands below with the EdgeFlare that PYTHON imports, and writes what they
made to FOLDER/CASE/PART, all but times, versions and paths. `compare` prints each part that
differs, with its first differing line, and exits with 1 if there is one. A change that should alter
no result is shown to alter none by recording the commit before it and the commit after it.

Recorded are every strategy with every `--find`, ties excluded and included, for the run seeds 0 and
1, with 20 seeds and 300 queries, on the example pair and on the pairs of DIR that are named below;
refined findings, an ensemble, two devices and other bounds; and of some of these runs what
`explain`, `replay`, `report` and `repair` write, and one `rank`.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[1] / "examples" / "fashion_lenet4"
PAIRS = ("lenet5_mnist_int8", "resnet20_cifar10_int8")
STRATEGIES = (
    "boundary",
    "boundary-mh",
    "dflare",
    "dflare-d",
    "dflare-r",
    "dflare-published",
    "diffchaser",
    "donor",
    "random",
)
FINDS, TIES, RNG_SEEDS = ("any", "compression", "kernel"), ("exclude", "include"), (0, 1)
BUDGET = ("--first", "20", "--max-queries", "300", "--time-limit", "100000", "--fail-on", "none")
UNREFINED = ("--shrink", "0", "--within", "none")
VARIANTS = {
    "refined": ("--strengthen", "50", "--shrink", "100"),
    "ensemble": (*UNREFINED, "--ensemble", "xnnpack,reference"),
    "two-devices": (*UNREFINED, "--device", "emulated-builtin", "--device", "emulated-reference"),
    "bounds": (*UNREFINED, "--max-linf", "16", "--max-l2", "300"),
    "total-queries": (*UNREFINED, "--total-queries", "600"),
}
TIMES = re.compile(
    r"seconds|latency|^(ratio|edgeflare|agent_version|protocol|started|finished|date|cost)$"
)
ADDED = {"operators"}
"""Keys of a plan that were added since commits that are compared."""
ADDED_LINES = re.compile(r'"plan operators"|<dt>operators</dt>|^ *"ratio": [\d.]+,?$')
"""Where reports show these keys, and a quotient of two times in recordings made before."""
PATHS = re.compile(r"^(original|compressed|seeds|path|folder|run|test|labelled|out)$")


@dataclass(frozen=True, slots=True)
class Case:
    """Commands, one after the other, each with `{out}` for the folder of this case."""

    name: str
    commands: tuple[tuple[str, ...], ...]


def main() -> None:
    arguments = parse()
    if arguments.action == "record":
        chosen = [case for case in cases(arguments.pairs) if arguments.only in case.name]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for case in pool.map(lambda case: record(case, arguments), chosen):
                print(case, flush=True)
    else:
        sys.exit(1 if differences(arguments.folder, arguments.other) else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record", help="run the commands and write what they made")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--python", default=sys.executable, help="its EdgeFlare is recorded")
    recording.add_argument("--pairs", type=Path, help="a folder that holds the further pairs")
    recording.add_argument("--only", default="", help="cases whose name holds this text")
    recording.add_argument("--jobs", type=int, default=2, help="cases at a time")
    comparing = actions.add_parser("compare", help="print what differs between two recordings")
    comparing.add_argument("folder", type=Path)
    comparing.add_argument("other", type=Path)
    return parser.parse_args()


def cases(pairs: Path | None) -> Iterator[Case]:
    """Return what is recorded, the cases that take longest first."""
    folders = [EXAMPLE, *(pairs / name for name in PAIRS if pairs)]
    for pair in folders:
        if (pair / "variants").is_dir():
            yield rank_case(pair)
        yield whole_case(pair)
        for (name, options), rng_seed in product(VARIANTS.items(), RNG_SEEDS):
            yield search_case(pair, f"{name}-{rng_seed}", (*options, "--rng-seed", str(rng_seed)))
        for strategy, find, ties, rng_seed in product(STRATEGIES, FINDS, TIES, RNG_SEEDS):
            options = ("--strategy", strategy, "--find", find, "--ties", ties)
            yield search_case(
                pair,
                f"{strategy}-{find}-{ties}-{rng_seed}",
                (*UNREFINED, *options, "--rng-seed", str(rng_seed)),
            )


def search_case(pair: Path, name: str, options: Sequence[str]) -> Case:
    command = ("search", str(pair), "--out", "{out}/run", *BUDGET, *options)
    return Case(f"{pair.name}-{name}", (command,))


def whole_case(pair: Path) -> Case:
    """Return a run and all that is made of it; repairing needs more seeds."""
    run = "{out}/run"
    search = search_case(pair, "", (*VARIANTS["refined"], "--first", "40")).commands[0]
    return Case(
        f"{pair.name}-whole",
        (
            search,
            ("explain", run),
            ("replay", run, "--out", "{out}/replay", "--fail-on", "any"),
            ("report", run, "--html", "--junit", "--csv"),
            ("repair", run, "--method", "shifts", "--out", "{out}/repair", "--rounds", "2"),
        ),
    )


def rank_case(pair: Path) -> Case:
    """Return the ranking of the pair's compressed model and its first variant."""
    options = ("--first", "20", "--max-queries", "300", "--time-limit", "100000", "--shrink", "50")
    variant = sorted((pair / "variants").glob("*.tflite"))[:1]
    further = [text for path in variant for text in ("--compressed", str(path))]
    return Case(
        f"{pair.name}-rank",
        (("rank", str(pair), *further, "--out", "{out}/rank", *options),),
    )


def record(case: Case, arguments: argparse.Namespace) -> str:
    """Run the case's commands and write what they made."""
    folder = arguments.folder / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    codes = []
    with tempfile.TemporaryDirectory() as out:
        for command in case.commands:
            words = [word.replace("{out}", out) for word in command]
            done = subprocess.run(
                [arguments.python, "-m", "edgeflare", *words],
                cwd=out,
                capture_output=True,
                text=True,
                check=False,
            )
            codes.append(f"{command[0]}: exit {done.returncode}")
            (folder / f"{command[0]}.txt").write_text(shown(command[0], done.stdout, out))
            if done.returncode not in (0, 1):
                codes.append(plain(done.stderr, out))
        (folder / "exit-codes.txt").write_text("\n".join(codes) + "\n")
        for path in sorted(Path(out).rglob("*")):
            if path.is_file() and (write := WRITERS.get(path.suffix)):
                part = "_".join(path.relative_to(out).parts)
                (folder / part).write_text(write(path, out))
    return case.name + ": " + ", ".join(codes)


def plain(text: str, out: str) -> str:
    """Return the text without times, memory, the path of the folder and runs of spaces."""
    text = text.replace(out, "OUT").replace(Path(out).name, "OUT")
    text = re.sub(r"\d[\d,.]*(?= ?(?:µs|ms|s|min|h|MB|per second|seconds?)\b)", "N", text)
    text = re.sub(r"(seconds</dt><dd>)[^<]*", r"\1N", text)
    text = re.sub(r"(N µs \()[^)]*", r"\1N", text)
    text = re.sub(r" +", " ", text)
    return re.sub(r"(time|seconds|timestamp)=\"[^\"]*\"", r'\1="N"', text)


def shown(command: str, text: str, out: str) -> str:
    """Return what a command printed; the last column of a rank is the latency."""
    text = plain(text, out)
    return re.sub(r"[\d.]+( \|)?\s*$", r"N\1", text, flags=re.M) if command == "rank" else text


def document(path: Path, out: str) -> str:
    text = json.dumps(stripped(json.loads(path.read_text())), indent=1, sort_keys=True)
    return plain(text, out)


def stripped(value: Any) -> Any:
    """Return a document without times, versions, paths and added keys of the plan."""
    if isinstance(value, dict):
        return {
            key: "PATH" if PATHS.search(key) and isinstance(entry, str) else stripped(entry)
            for key, entry in value.items()
            if not TIMES.search(key) and not ("max_linf" in value and key in ADDED)
        }
    return [stripped(entry) for entry in value] if isinstance(value, list) else value


def digest(path: Path, _out: str) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() + "\n"


def text(path: Path, out: str) -> str:
    return shown(path.stem, path.read_text(), out)


def table(path: Path, out: str) -> str:
    """Return a CSV table without the columns of times."""
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    kept = [{key: cell for key, cell in row.items() if not TIMES.search(key)} for row in rows]
    return plain(json.dumps(kept, indent=1), out)


WRITERS: dict[str, Callable[[Path, str], str]] = {
    ".json": document,
    ".html": text,
    ".xml": text,
    ".md": text,
    ".csv": table,
    ".toml": text,
    ".png": digest,
    ".svg": digest,
    ".npy": digest,
    ".npz": digest,
    ".tflite": digest,
}


def differences(folder: Path, other: Path) -> int:
    """Print how many parts differ, and each of these with its first differing line."""
    parts = {
        path.relative_to(root)
        for root in (folder, other)
        for path in root.rglob("*")
        if path.is_file()
    }
    differing = 0
    for part in sorted(parts):
        before, after = lines(folder / part), lines(other / part)
        if before != after:
            differing += 1
            print(f"{part}: {first_difference(before, after)}")
    print(
        f"{len(parts)} parts of {len({part.parts[0] for part in parts})} cases; {differing} differ"
    )
    return differing


def lines(path: Path) -> list[str] | None:
    if not path.exists():
        return None
    return [line for line in path.read_text().splitlines() if not ADDED_LINES.search(line)]


def first_difference(before: list[str] | None, after: list[str] | None) -> str:
    if before is None or after is None:
        return "is in one recording only"
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            return f"line {number}: {old.strip()[:120]!r} became {new.strip()[:120]!r}"
    return f"{len(before)} lines became {len(after)}"


if __name__ == "__main__":
    main()
