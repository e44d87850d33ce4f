"""Plant faults, half of them in the compressed file and half in the device, and see who is blamed.

    python benchmarks/planted_faults.py PAIR PAIR PAIR --out runs/planted.json
    python benchmarks/planted_faults.py PAIR PAIR PAIR --held-out SEED --out runs/held-out.json
    python benchmarks/planted_faults.py PAIR PAIR PAIR --healthy --out runs/healthy.json

Each fault is searched for and one of its findings explained. A fault in the file has to be called
compression, one of the device alone kernel (or unstable, or a suspect input, where it is that), and
a fault that sits in a layer has to be found in that layer. The device is a real agent whose workers
run a broken runtime; the faults are in tests/support/fault_injection.py, what is planted where in
benchmarks/support/drawn_faults.py.

To the pairs comes a MobileNetV2-like network of tests/support/networks.py. The faults are those
that the diagnosis was made with; with --held-out they are drawn, over mobile and residual networks
of weights that are drawn as well.

With --healthy nothing is planted: the compressed model of each pair, the files in its folder
"variants", and its own quantized anew as by six converters (tests/support/requantizing.py), all of
whose findings have to be due to no single layer.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from drawn_faults import held_out, tuned
from edgeflare.models.pair import load_pair
from fault_catalogue import OTHER_RUNTIME, Fault
from fault_trial import OLD_BOARD, Healthy, Judged, JudgedHealthy, judge, judge_healthy
from networks import Kind, write_pair
from requantizing import CONVERTERS, requantized


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+", type=Path, help="folders of int8 pairs")
    parser.add_argument("--held-out", type=int, metavar="SEED", help="draw the faults")
    parser.add_argument("--count", type=int, default=36, help="faults to draw (default: 36)")
    parser.add_argument("--healthy", action="store_true", help="plant no faults")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time (default: 1)")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    if options.healthy:
        _judge_healthy(options)
        return
    with tempfile.TemporaryDirectory(prefix="edgeflare-networks-") as name:
        faults = [
            fault
            for fault in _faults(options, Path(name))
            if options.only in fault.planted.fault
            and (fault.planted.fault != OTHER_RUNTIME or OLD_BOARD.exists())
        ]
        if not OLD_BOARD.exists():
            print(
                f"not planted: {OTHER_RUNTIME!r}, which needs tflite-runtime in {OLD_BOARD}",
                file=sys.stderr,
            )
        judged = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for one in pool.map(judge, faults):
                judged.append(one)
                said = f"{one.fault.planted.fault}: {one.verdict}"
                print(f"{len(judged)}/{len(faults)} {said}", flush=True)
                if options.out:
                    _write(options.out, judged)
        _show(judged)


def _faults(options: argparse.Namespace, folder: Path) -> Iterator[Fault]:
    seed = options.held_out
    if seed is None:
        return tuned(options.pairs, write_pair(folder / "mobilenet", "mobilenet"))
    networks: list[tuple[Kind, int]] = [("mobilenet", 1), ("mobilenet", 2), ("resnet", 3)]
    drawn = [
        write_pair(folder / f"{kind}-{number}", kind, seed + number) for kind, number in networks
    ]
    return held_out([*options.pairs, *drawn], seed, options.count, old_board=OLD_BOARD.exists())


def _judge_healthy(options: argparse.Namespace) -> None:
    files = [one for pair in options.pairs for one in _healthy(pair) if options.only in one.name]
    judged = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for one in pool.map(judge_healthy, files):
            judged.append(one)
            said = "no single layer" if one.right else f"{one.named} of {one.findings} named"
            print(f"{len(judged)}/{len(files)} {one.file.name}: {said}", flush=True)
            if options.out:
                _write_healthy(options.out, judged)
    table = Table("pair", "file", "findings", "a layer named", "a layer listed", "not seen")
    for one in judged:
        figures = (one.findings, one.named, one.listed, one.unseen)
        style = None if one.right else "red"
        table.add_row(one.file.pair.name, one.file.name, *map(str, figures), style=style)
    console = Console()
    console.print(table)
    found = [one.right for one in judged if one.findings]
    console.print(f"no single layer: {_share(found)} of the files that have findings")


def _write_healthy(path: Path, judged: Sequence[JudgedHealthy]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "pair": one.file.pair.name,
            "file": one.file.name,
            "findings": one.findings,
            "named": one.named,
            "listed": one.listed,
            "unseen": one.unseen,
        }
        for one in judged
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n")


def _healthy(pair: Path) -> Iterator[Healthy]:
    """Yield a pair's healthy files."""
    known = load_pair(pair)
    original, content = Path(str(known.original)).read_bytes(), known.compressed.read_bytes()
    yield Healthy(pair, known.compressed.name, content)
    for path in sorted((pair / "variants").glob("*.tflite")):
        yield Healthy(pair, path.name, path.read_bytes())
    for name, converter in CONVERTERS.items():
        yield Healthy(pair, name, requantized(original, content, converter))


def _write(path: Path, judged: Sequence[Judged]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "pair": one.fault.pair.name,
            "where": one.fault.where,
            "fault": one.fault.planted.fault,
            "planted": asdict(one.fault.planted),
            "expected": one.fault.verdict,
            "expected_which": one.fault.which,
            "verdict": one.verdict,
            "which": one.which,
            "why": one.why,
            "layer": one.fault.operator,
            "found_layer": one.operator,
            "first": one.first,
            "device_queries": one.device_queries,
            "asked": one.asked,
            "seconds": round(one.seconds, 1),
            "errors": one.errors,
        }
        for one in judged
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n")


def _show(judged: Sequence[Judged]) -> None:
    table = Table("pair", "where", "fault", "layer", "verdict", "found in")
    for one in judged:
        style = None if one.right_verdict and (_free(one) or one.right_layer) else "red"
        table.add_row(
            one.fault.pair.name,
            one.fault.where,
            one.fault.planted.fault,
            _text(one.fault.operator),
            one.verdict if one.which is None else f"{one.verdict}: {one.which}",
            _text(one.operator),
            style=style,
        )
    console = Console()
    console.print(table)
    layered = [one for one in judged if not _free(one)]
    verdicts, layers = [one.right_verdict for one in judged], [one.right_layer for one in layered]
    most = max((max(one.device_queries, one.asked or 0) for one in judged), default=0)
    console.print(f"right verdict: {_share(verdicts)}; right first layer: {_share(layers)}")
    console.print(f"device queries of an explanation: at most {most}")


def _free(one: Judged) -> bool:
    """Whether a fault sits in no layer."""
    return one.fault.operator is None


def _share(right: Sequence[bool]) -> str:
    return f"{sum(right)} of {len(right)} ({sum(right) / max(1, len(right)):.0%})"


def _text(operator: int | None) -> str:
    return "" if operator is None else str(operator)


if __name__ == "__main__":
    main()
