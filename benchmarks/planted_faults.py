"""Plant faults, half of them in the compressed file and half in the device, and see who is blamed.

    python benchmarks/planted_faults.py PAIR PAIR PAIR --out runs/planted.json

Each fault is searched for and one of its findings explained. A fault in the file has to be called
compression, one of the device alone kernel (or unstable, or a suspect input, where it is that), and
a fault that sits in a layer has to be found in that layer. The device is a real agent whose workers
run a broken runtime; the faults are in tests/planting.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import planting
from edgeflare.models.graph import Graph
from edgeflare.models.pair import load_pair
from planting import CONSTANTS, broken_constant, broken_scale

_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_SECONDS = 400
_OLD_BOARD = Path(__file__).resolve().parents[1] / ".venv-old-board" / "bin" / "python"


@dataclass(frozen=True)
class Fault:
    """A fault, where it is planted, and what has to be said of it.

    Attributes:
        pair: folder of the pair.
        where: "file" or "device".
        name: what is wrong.
        verdicts: those that are right.
        operator: the layer that it sits in; None where it sits in none.
        tensor: the constant that is changed; empty where none is.
        threads: the device's interpreter threads.

    """

    pair: Path
    where: str
    name: str
    verdicts: tuple[str, ...]
    operator: int | None = None
    tensor: str = ""
    threads: int = 1


@dataclass
class Judged:
    """What was said of a fault."""

    fault: Fault
    verdict: str = "nothing found"
    which: str | None = None
    operator: int | None = None
    first: bool = False
    why: str = ""
    device_queries: int = 0
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def right_verdict(self) -> bool:
        """Whether the verdict is one of the right ones."""
        return self.verdict in self.fault.verdicts

    @property
    def right_layer(self) -> bool:
        """Whether the layer is the one that the fault sits in."""
        return self.operator == self.fault.operator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+", type=Path, help="folders of int8 pairs")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time (default: 1)")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    faults = [fault for fault in _faults(options.pairs) if options.only in fault.name]
    with ThreadPoolExecutor(options.jobs) as pool:
        judged = []
        for one in pool.map(_judge, faults):
            judged.append(one)
            print(f"{len(judged)}/{len(faults)} {one.fault.name}: {one.verdict}", flush=True)
            if options.out:
                _write(options.out, judged)
    _show(judged)


def _faults(pairs: Sequence[Path]) -> Iterator[Fault]:
    """Yield the faults: in every pair by constants, each in another layer; the others in one."""
    names = list(CONSTANTS)
    for number, pair in enumerate(pairs):
        graph = Graph(_compressed(pair).read_bytes())
        layers = [one for one in graph.layers if one.name in _WEIGHTED]
        convolutions = [one for one in layers if one.name == "CONV_2D"]
        for at in range(4):
            for where, verdict, shift in (("file", "compression", 0), ("device", "kernel", 3)):
                name = names[(4 * number + at + shift) % len(names)]
                spatial = "row" in name
                among = convolutions if spatial else layers
                one = among[(at * len(among) // 4 + shift + number) % len(among)]
                constant = one.inputs[2 if "bias" in name else 1]
                tensor = graph.tensors[constant].name
                yield Fault(pair, where, name, (verdict,), one.index, tensor)
        one = layers[(number + 1) % len(layers)]
        tensor = graph.tensors[one.inputs[1]].name
        yield Fault(pair, "file", "scale off", ("compression",), one.index, tensor)
        yield Fault(pair, "device", "scale off", ("kernel",), one.index, tensor)
    yield from _faults_of_the_device(pairs)


def _faults_of_the_device(pairs: Sequence[Path]) -> Iterator[Fault]:
    first, last = pairs[0], pairs[-1]
    graph = Graph(_compressed(first).read_bytes())
    one = next(one for one in graph.layers if one.name in _WEIGHTED)
    tensor = graph.tensors[one.inputs[1]].name
    yield Fault(first, "device", "weights negated", ("kernel",), one.index, tensor, threads=2)
    yield Fault(first, "device", "constant output", ("kernel",))
    yield Fault(first, "device", "flaky", ("unstable",))
    yield Fault(last, "device", "stale output", ("unstable",))
    yield Fault(first, "device", "rows from below", ("input-suspect",))
    yield Fault(last, "device", "channels swapped", ("input-suspect",))
    yield Fault(last, "device", "other runtime", ("kernel",))


def _compressed(pair: Path) -> Path:
    return load_pair(pair).compressed


def _judge(fault: Fault) -> Judged:
    began = time.monotonic()
    judged = Judged(fault)
    with tempfile.TemporaryDirectory(prefix="edgeflare-planted-") as name:
        folder = Path(name)
        pair = folder / "pair"
        shutil.copytree(fault.pair, pair)
        if fault.where == "file":
            compressed = _compressed(pair)
            compressed.write_bytes(_broken(compressed.read_bytes(), fault))
        with _device(fault, folder) as device:
            try:
                _explain(judged, folder, device)
            except (subprocess.SubprocessError, OSError) as error:
                judged.errors.append(f"{error} {getattr(error, 'stderr', '')}")
    judged.seconds = time.monotonic() - began
    return judged


def _broken(content: bytes, fault: Fault) -> bytes:
    if fault.name == "scale off":
        return broken_scale(content, fault.tensor)
    return broken_constant(content, fault.tensor, fault.name)


@contextmanager
def _device(fault: Fault, folder: Path) -> Iterator[str]:
    """Start an agent with the fault, and yield the profile's name."""
    profiles = folder / "device_profiles"
    profiles.mkdir()
    if fault.where == "file":
        yield "emulated-xnnpack"
        return
    if fault.name == "other runtime":
        text = f'transport = "emulated"\npython = "{_OLD_BOARD}"\n'
        (profiles / "double.toml").write_text(text)
        yield "double"
        return
    spec = {"fault": fault.name, "input": _input_name(fault.pair), "threads": fault.threads}
    if fault.tensor:
        spec["tensor"] = fault.tensor
    (folder / "spec.json").write_text(json.dumps(spec))
    launcher = f"{sys.executable} {planting.__file__} {folder}/spec.json"
    command = [
        *(sys.executable, "-m", "edgeflare_agent", "--port", "0", "--exit-with-stdin"),
        *("--store", str(folder / "store"), "--launcher", launcher),
    ]
    with (
        open(folder / "ready", "w+") as ready,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=ready, stderr=subprocess.DEVNULL
        ) as agent,
    ):
        # Leaving the block closes its stdin, which ends it.
        (profiles / "double.toml").write_text(
            f'transport = "address"\naddress = "127.0.0.1:{_port(agent, folder / "ready")}"\n'
            f"threads = {fault.threads}\n"
        )
        yield "double"


def _port(agent: subprocess.Popen[bytes], ready: Path) -> int:
    """Wait until an agent is ready, and return its port."""
    while not ready.read_text().endswith("\n"):
        if agent.poll() is not None:
            raise OSError(f"the agent ended with {agent.returncode}")
        time.sleep(0.1)
    return int(json.loads(ready.read_text())["port"])


def _input_name(pair: Path) -> str:
    graph = Graph(_compressed(pair).read_bytes())
    return graph.tensors[graph.inputs[0]].name


def _explain(judged: Judged, folder: Path, device: str) -> None:
    fault, run = judged.fault, folder / "run"
    find = "any" if fault.where == "file" else "kernel"
    _edgeflare(
        folder,
        *("search", "pair", "--device", device, "--find", find, "--limit", "24"),
        # The host's other kernels know nothing of a fault in the device.
        *("--ensemble", "xnnpack", "--max-queries", "1000", "--fail-on", "none", "--out", str(run)),
    )
    document = json.loads((run / "run.json").read_bytes())
    found = [*document["deviating_seeds"], *document["findings"], *document["flaky"]]
    if not found:
        return
    # Where all three labels differ, compression has a share in it besides.
    strongest = max(found, key=lambda one: (one["cause"] != "mixed", one["strength"] or 0.0))
    _edgeflare(folder, "explain", str(run), str(strongest["seed_id"]))
    explained = json.loads((run / "explain.json").read_bytes())
    entry = explained["findings"][str(strongest["seed_id"])]
    verdict = entry["verdict"]
    judged.verdict, judged.which, judged.why = verdict["name"], verdict["which"], verdict["why"]
    judged.device_queries = entry["device_queries"]
    onset = entry["device_and_twin"]["onset"]
    if fault.where == "file":
        onset = entry["twin_and_original"]["first"]
    judged.operator = None if onset is None else onset["operator"]
    judged.first = entry["device_and_twin"]["first"]


def _edgeflare(folder: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "edgeflare", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=True,
    )


def _write(path: Path, judged: Sequence[Judged]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "pair": one.fault.pair.name,
            "where": one.fault.where,
            "fault": one.fault.name,
            "expected": list(one.fault.verdicts),
            "verdict": one.verdict,
            "which": one.which,
            "why": one.why,
            "layer": one.fault.operator,
            "found_layer": one.operator,
            "first": one.first,
            "device_queries": one.device_queries,
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
            one.fault.name,
            _text(one.fault.operator),
            one.verdict if one.which is None else f"{one.verdict}: {one.which}",
            _text(one.operator),
            style=style,
        )
    console = Console()
    console.print(table)
    layered = [one for one in judged if not _free(one)]
    verdicts, layers = [one.right_verdict for one in judged], [one.right_layer for one in layered]
    console.print(f"right verdict: {_share(verdicts)}; right first layer: {_share(layers)}")


def _free(one: Judged) -> bool:
    """Whether a fault sits in no layer."""
    return one.fault.operator is None


def _share(right: Sequence[bool]) -> str:
    return f"{sum(right)} of {len(right)} ({sum(right) / max(1, len(right)):.0%})"


def _text(operator: int | None) -> str:
    return "" if operator is None else str(operator)


if __name__ == "__main__":
    main()
