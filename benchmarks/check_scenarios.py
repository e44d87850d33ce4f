"""Whether `edgeflare check` gives the right verdict, and names the defect in its first sentence.

    python benchmarks/check_scenarios.py --pairs PAIRS_FOLDER --out runs/check-scenarios.json
    python benchmarks/check_scenarios.py --scenarios FOLDER
    python benchmarks/check_scenarios.py --pairs PAIRS_FOLDER --weight-faults 8 --seed COMMIT

Pairs with one defect each, and healthy ones, are made of the real models that the repository ships,
and of the development pairs where --pairs names them; what is drawn is drawn by --seed. Each is
checked, and the sentence names the defect where its rule is one that fits and it has one of the
words that do, such as the layer. --scenarios checks ready folders with a truth.json instead.

With --weight-faults so many faults are planted in the constants of an int8 network instead, one at
a time, by the hash of --seed; they are drawn until that many change enough of the decisions. One
counts as stopped where the check says not to ship it, and as named where the sentence has its
operator. The network is the residual one of the development pairs, or else the example.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

import fault_injection
from edgeflare.errors import EdgeFlareError
from faulty_agent import faulty_agent
from ship_scenarios import Material, Scenario, Sources, as_raw, scenarios
from weight_faults import drawn_faults

_READY: dict[str, tuple[str, ...]] = {
    "device-preprocessing": ("stages",),
    "calibration-preprocessing": ("range", "preprocessing"),
    "label-order": ("order",),
    "activation-range": ("range", "layer"),
    "bias-overflow": ("file",),
    "class-harm": ("class",),
    "kernel": ("kernels",),
    "state-lost": ("file",),
}
"""The rules that fit the kinds of a truth.json."""


@dataclass
class Checked:
    """What a check said.

    Attributes:
        scenario: its name.
        kind: of its defect.
        wanted: the right verdict.
        verdict: that it gave; empty where it failed.
        rule: that it named; empty without a cause.
        words: the first sentence; empty without a cause.
        sentence: why, with its evidence.
        named: whether the sentence names the defect; of healthy ones whether there is no cause.
        right: the accuracy of the original and on the device, or how many decisions changed.
        seconds: that it took.
        error: what went wrong.

    """

    scenario: str
    kind: str
    wanted: str
    verdict: str = ""
    rule: str = ""
    words: str = ""
    sentence: str = ""
    named: bool = False
    right: str = ""
    seconds: float = 0.0
    error: str = ""

    @property
    def good(self) -> bool:
        """Whether the verdict is right, and the sentence too."""
        return self.verdict == self.wanted and self.named


def main() -> None:
    options = _parse()
    with tempfile.TemporaryDirectory(prefix="edgeflare-scenarios-") as name:
        folder = Path(name)
        every = list(_chosen(options))
        checked: list[Checked] = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for one in pool.map(partial(_built_and_checked, folder=folder), every):
                checked.append(one)
                print(f"{len(checked)}/{len(every)} {one.scenario}: {one.verdict}", flush=True)
                if options.out:
                    options.out.parent.mkdir(parents=True, exist_ok=True)
                    rows = [asdict(each) for each in checked]
                    options.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    _show(checked)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, help="the folder of the development pairs")
    parser.add_argument("--scenarios", type=Path, help="a folder of folders with a truth.json")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="scenarios whose names have one of these in them"
    )
    parser.add_argument("--seed", default="0", help="a text by whose hash things are drawn")
    parser.add_argument("--jobs", type=int, default=2, help="checks at a time (default: 2)")
    parser.add_argument("--weight-faults", type=int, metavar="N", help="plant faults in weights")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> Iterator[Scenario]:
    """Yield what is to be checked."""
    sources = Sources(options.pairs, options.seed)
    every = scenarios(sources)
    if options.scenarios:
        every = map(_ready, sorted(path.parent for path in options.scenarios.glob("*/truth.json")))
    if options.weight_faults:
        every = _with_weight_faults(sources, options.weight_faults)
    yield from (one for one in every if any(part in one.name for part in options.only))


def _ready(folder: Path) -> Scenario:
    """Return a folder with a truth.json as a scenario."""
    truth = json.loads((folder / "truth.json").read_bytes())
    kind, where = truth["kind"], truth["where"] or {}
    return Scenario(
        folder.name,
        kind,
        "ship" if truth["ship"] else "do-not-ship",
        partial(Material.read, folder),
        _READY.get(kind, ()),
        tuple(str(where[one]).lower() for one in ("class", "operator_type") if one in where)[:1],
        truth["device"],
    )


def _with_weight_faults(sources: Sources, count: int) -> Iterator[Scenario]:
    """Yield a network with one fault at a time."""
    healthy = sources.fashion
    if sources.pairs is not None:
        healthy = sources.pair("resnet20_cifar10_int8")
    drawn = drawn_faults(healthy.compressed, as_raw(healthy), sources.seed)
    for at, fault in enumerate(islice(drawn, count)):
        yield Scenario(
            f"fault_{at}",
            f"{fault.kind}, {fault.operator}, {fault.changed:.0%} changed",
            "do-not-ship",
            partial(healthy.made, compressed=fault.content),
            ("layer", "file", "range"),
            (fault.operator.lower(),),
        )


def _built_and_checked(scenario: Scenario, folder: Path) -> Checked:
    known = Checked(scenario.name, scenario.kind, scenario.verdict)
    home = folder / scenario.name
    home.mkdir()
    try:
        scenario.build().write(home / "pair")
        with ExitStack() as stack:
            device = scenario.device
            if scenario.planted is not None:
                spec = home / "spec.json"
                spec.write_text(json.dumps(asdict(scenario.planted)))
                launcher = [sys.executable, str(fault_injection.__file__), str(spec)]
                device = stack.enter_context(faulty_agent(home, launcher, "threads = 1"))
            _check(known, home, home / "pair", device)
    except (EdgeFlareError, OSError, subprocess.SubprocessError, ValueError) as failed:
        known.error = repr(failed)
    known.named = not known.error and _names(known, scenario.rules, scenario.words)
    return known


def _check(known: Checked, home: Path, pair: Path, device: str) -> None:
    out = home / "check"
    command = ["check", str(pair), "--device", device, "--out", str(out), "--trust"]
    done = subprocess.run(
        [sys.executable, "-m", "edgeflare", *command],
        cwd=home,
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if not (out / "check.json").is_file():
        known.error = done.stderr.strip() or f"exit code {done.returncode}"
        return
    document = json.loads((out / "check.json").read_bytes())
    known.verdict, known.sentence = document["verdict"], document["sentence"]
    if (cause := document["cause"]) is not None:
        known.rule, known.words = cause["rule"], cause["sentence"]
    known.right, known.seconds = _outcome(document), document["seconds"]


def _outcome(document: dict[str, Any]) -> str:
    if not document["figures"]["devices"]:
        return ""
    its = document["figures"]["devices"][0]["decisions"]
    if its["labelled"] and "original" in its["right"]:
        shares = [its["right"][arm] / its["labelled"] for arm in ("original", "device")]
        return f"{shares[0]:.1%} → {shares[1]:.1%}"
    return f"{its['changes']['changed']} of {its['inputs']} changed"


def _names(known: Checked, rules: Sequence[str], words: Sequence[str]) -> bool:
    if not rules:
        return not known.rule
    said = known.words.lower()
    return known.rule in rules and (not words or any(one in said for one in words))


def _show(checked: Sequence[Checked]) -> None:
    table = Table("scenario", "kind", "expected", "got", "rule", "named", "right")
    for one in checked:
        table.add_row(
            one.scenario,
            one.kind,
            one.wanted,
            one.verdict or one.error[:40],
            one.rule,
            "yes" if one.named else "no",
            one.right,
            style=None if one.good else "red",
        )
    console = Console()
    console.print(table)
    healthy = [one for one in checked if one.kind == "healthy"]
    broken = [one for one in checked if one.kind != "healthy"]
    console.print(
        f"verdict: {sum(one.verdict == one.wanted for one in checked)} of {len(checked)};"
        f" defect named: {sum(one.named for one in broken)} of {len(broken)};"
        f" healthy ones stopped: {sum(one.verdict == 'do-not-ship' for one in healthy)} of"
        f" {len(healthy)}; all right: {sum(one.good for one in checked)} of {len(checked)}"
    )
    for one in checked:
        if not one.good:
            console.print(f"{one.scenario}: {one.error or one.sentence}", highlight=False)


if __name__ == "__main__":
    main()
