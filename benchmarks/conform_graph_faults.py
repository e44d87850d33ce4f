"""Plant faults of graphs in sound kernels, and see what `edgeflare conform --graphs` says of them.

    python benchmarks/conform_graph_faults.py SEED... [--graphs 6000] [--out FILE.json]
    python benchmarks/conform_graph_faults.py SEED --faults 4 --agent
    python benchmarks/conform_graph_faults.py SEED --faults 0 --keeping 4 --agent

Kinds, operators and types of the faults are drawn from each SEED, which should be one that was not
used while the command was worked at; those of all seeds are planted in the same graphs. These are
the graphs that a run draws, and run on the host's built-in kernels; a fault changes what a graph
answers that has its arrangement, and never what an operator answers alone. A fault is found if a
graph fails by it; its arrangement is right if the least graph has the operators that were planted,
and says how they hang together. With --agent each fault is planted in the workers of a real agent,
on which the command itself is run. With --keeping N there are N faults besides that show only where
a graph takes turns, in two shapes or by two signatures: an operator computes as in the turn before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

import graph_faults
from edgeflare.conform.drafts.cells import Cell, chosen_cells
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel, Turns
from edgeflare.conform.execution.model_opener import HostOpener
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.conform.graphs.failing_graphs import FailingGraph
from edgeflare.conform.graphs.graph_drawing import GraphDrawing
from edgeflare.conform.graphs.graph_findings import GraphFindings
from edgeflare.conform.graphs.graph_verdict import judge_graphs, wrong_places
from edgeflare.conform.verdict.joint_operators import judged_whole
from edgeflare.run.run_directory import RunDirectory
from faulty_agent import faulty_agent
from graph_fault_kinds import (
    KEEPING,
    TYPES,
    GraphFault,
    drawn_faults,
    drawn_keeping_faults,
    spoiled,
    spoiled_in_turn,
    wrong_outputs,
)

_SHRUNK = 8
"""Failing graphs of a fault that are shrunk."""


@dataclass
class PlantedDevice:
    """Sound kernels with a fault; see `KernelArm`.

    Attributes:
        sound: runs graphs.
        fault: what is wrong.
        name: that of the device.

    """

    sound: KernelArm
    fault: GraphFault
    name: str = "device"

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        """Run models; see `KernelArm`."""
        answers = self.sound.run(models)
        return [spoiled(self.fault, *one) for one in zip(models, answers, strict=True)]

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        """Run models each by itself; see `KernelArm`."""
        return self.run(models) if packed else []

    def on_other_threads(self) -> KernelArm | None:
        """Return nothing: no fault shows on other threads alone."""
        return None

    def without_reset(self, rows: int) -> KernelArm | None:
        """Return nothing: no fault is one of a state."""
        del rows
        return None

    def taking_turns(self, turns: Turns) -> KernelArm | None:
        """Return the kernels in turns, with a fault that shows in these."""
        sound = self.sound.taking_turns(turns)
        if sound is None or KEEPING.get(self.fault.kind) != turns:
            return sound
        return _PlantedInTurn(sound, self.fault, self.name)

    def close(self) -> None:
        """Close nothing: the kernels are everybody's."""


class _PlantedInTurn(PlantedDevice):
    """Sound kernels in turns with a fault."""

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        """Run models in turns; see `KernelArm`."""
        answers = self.sound.run(models)
        return [spoiled_in_turn(self.fault, *one) for one in zip(models, answers, strict=True)]


@dataclass
class TriedGraphFault:
    """What became of a fault.

    Attributes:
        fault: the fault.
        failing: graphs that fail by it.
        said: what its findings say: operators and arrangement.
        right: whether one says what was planted.

    """

    fault: GraphFault
    failing: int = 0
    said: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    right: bool = False


def main() -> None:
    """Plant faults, and print what became of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--graphs", type=int, default=6000)
    parser.add_argument("--agent", action="store_true", help="plant each behind a real agent")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--keeping", type=int, default=0, help="faults that show in turns alone")
    given = parser.parse_args()
    faults = {
        seed: [*drawn_faults(seed, given.faults), *drawn_keeping_faults(seed, given.keeping)]
        for seed in given.seeds
    }
    every = list(dict.fromkeys(fault for several in faults.values() for fault in several))
    if given.agent:
        tried = {fault: _behind_an_agent(fault, given.graphs) for fault in every}
    else:
        tried = _in_an_arm(every, given.graphs)
    for seed, several in faults.items():
        _print(seed, [tried[fault] for fault in several])
    if given.out is not None:
        rows = {
            seed: [asdict(tried[fault]) for fault in several] for seed, several in faults.items()
        }
        given.out.write_text(json.dumps(rows, indent=1))


def _in_an_arm(faults: Sequence[GraphFault], graphs: int) -> dict[GraphFault, TriedGraphFault]:
    """Plant faults in what the host's kernels answer."""
    sound = replace_name(PackingArm(HostOpener("builtin")), "device")
    twin = replace_name(PackingArm(HostOpener("builtin")), "xnnpack")
    failing = _failing(faults, chosen_cells((), TYPES), sound, graphs)
    return {fault: _said(fault, failing[fault], sound, twin) for fault in faults}


def _behind_an_agent(fault: GraphFault, graphs: int) -> TriedGraphFault:
    """Plant a fault in an agent's workers, and run the command on it."""
    tried = TriedGraphFault(fault)
    with TemporaryDirectory(prefix="edgeflare-graph-fault-") as name:
        folder = Path(name)
        (folder / "spec.json").write_text(json.dumps(asdict(fault)))
        launcher = [sys.executable, graph_faults.__file__, f"{folder}/spec.json"]
        with faulty_agent(folder, launcher, 'kernels = "builtin"') as device:
            command = [sys.executable, "-m", "edgeflare", "conform", "--device", device, "--graphs"]
            command += ["--dtype", ",".join(TYPES), "--models", str(graphs), "--out", "run"]
            ended = subprocess.run(
                [*command, "--trust", "--quiet"],
                cwd=folder,
                env={**os.environ, "HOME": str(folder)},
                capture_output=True,
                text=True,
                check=False,
            )
        if ended.returncode not in (0, 1):
            sys.exit(f"{fault}: {' '.join(command)} ended in {ended.returncode}: {ended.stderr}")
        document = json.loads((folder / "run" / "conform.json").read_bytes())
    for found in document["findings"]:
        said = found["operator"], tuple(found["arrangement"])
        if fault.is_said(found["operator"].split(" then "), said[1]):
            tried.right = True
            tried.failing += found["failing"]
            tried.said.insert(0, said)
        else:
            tried.said.append(said)
    print(f"{fault}: {'right' if tried.right else '-'}", flush=True)
    return tried


def _print(seed: int, tried: Sequence[TriedGraphFault]) -> None:
    for one in tried:
        print(("right" if one.right else "found" if one.failing else "-"), one.fault, one.said[:2])
    found, right = sum(bool(one.failing) for one in tried), sum(one.right for one in tried)
    print(f"seed {seed}: {found} of {len(tried)} found, the arrangement of {right} is right")


def replace_name(arm: PackingArm, name: str) -> PackingArm:
    """Return an arm under another name."""
    arm.name = name
    return arm


def _failing(
    faults: Sequence[GraphFault], cells: Sequence[Cell], sound: KernelArm, graphs: int
) -> dict[GraphFault, list[FailingGraph]]:
    """Return the graphs that fail by each fault, of those that a run draws; run once for all."""
    drawing = GraphDrawing(cells, np.random.default_rng(0))
    failing: dict[GraphFault, list[FailingGraph]] = {fault: [] for fault in faults}
    keeping = [fault for fault in faults if fault.kind in KEEPING]
    plain = [fault for fault in faults if fault.kind not in KEEPING]
    operators, began = 0, time.monotonic()
    for _ in range(0, graphs, 192):
        models = drawing.ask(192)
        twin = replace(_SameKernels(sound), name="xnnpack")
        judged = judge_graphs(models, (sound, twin), ())
        drawing.tell(judged)
        operators += sum(len(model.graph.nodes) for model in models)
        for model, one in zip(models, judged, strict=True):
            if one.judgement is None or one.fails or not one.answers:
                continue
            own = one.answers["device"]  # of the last invocation, which may be no other's
            if judged_whole(model, own, one.expected, own).is_finding:
                continue
            for fault in keeping:
                if wrong_outputs(fault, model.graph) and len(failing[fault]) < _SHRUNK:
                    failing[fault] += _failing_in_turn(fault, model, sound, twin)
            for fault in plain:
                answer = spoiled(fault, model, one.answers["device"])
                said = judged_whole(model, answer, one.expected, one.answers["device"])
                if said.is_finding:
                    wrong = wrong_places(model, {"device": answer}, one.expected)
                    failing[fault].append(FailingGraph(model, said, wrong=wrong))
    seconds = time.monotonic() - began
    print(f"{graphs} graphs of {operators} operators, {drawing.pairs} pairs, {seconds:.0f} s")
    return failing


def _failing_in_turn(
    fault: GraphFault, model: PosedModel, sound: KernelArm, twin: KernelArm
) -> list[FailingGraph]:
    (judged,) = judge_graphs([model], (PlantedDevice(sound, fault), twin))
    if judged.judgement is None or not judged.fails:
        return []
    return [FailingGraph(model, judged.judgement, judged.invocation)]


@dataclass
class _SameKernels:
    """The same kernels under another name."""

    arm: KernelArm
    name: str = ""

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        return self.arm.run(models)

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        return self.arm.run_alone(models, packed)

    def on_other_threads(self) -> KernelArm | None:
        return None

    def without_reset(self, rows: int) -> KernelArm | None:
        del rows
        return None

    def taking_turns(self, turns: Turns) -> KernelArm | None:
        return self.arm.taking_turns(turns)

    def close(self) -> None:
        self.arm.close()


def _said(
    fault: GraphFault, failing: Sequence[FailingGraph], sound: KernelArm, twin: KernelArm
) -> TriedGraphFault:
    tried = TriedGraphFault(fault, len(failing))
    findings = GraphFindings(failing[:_SHRUNK], (PlantedDevice(sound, fault), twin))
    findings.shrink(True, lambda: None, lambda: False)
    with TemporaryDirectory() as folder:
        numbers = range(1, 1 + len(findings.counted))
        for one in findings.stored(list(numbers), RunDirectory(Path(folder)), ()):
            tried.said.append((one.operator, one.arrangement))
    tried.right = any(fault.is_said(name.split(" then "), words) for name, words in tried.said)
    return tried


if __name__ == "__main__":
    main()
