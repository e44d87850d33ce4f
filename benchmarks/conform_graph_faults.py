"""Plant faults of graphs in sound kernels, and see what `edgeflare conform --graphs` says of them.

    python benchmarks/conform_graph_faults.py SEED... [--graphs 6000] [--out FILE.json]

Kinds, operators and types of the faults are drawn from each SEED, which should be one that was not
used while the command was worked at; those of all seeds are planted in the same graphs. These are
the graphs that a run draws, and run on the host's built-in kernels; a fault changes what a graph
answers that has its arrangement, and never what an operator answers alone. A fault is found if a
graph fails by it; its arrangement is right if the least graph has the operators that were planted,
and says how they hang together.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from edgeflare.conform.drafts.cells import Cell, chosen_cells
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.execution.model_opener import HostOpener
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.conform.graphs.graph_arrangement import VIEWS
from edgeflare.conform.graphs.graph_drawing import GraphDrawing
from edgeflare.conform.graphs.graph_findings import FailingGraph, GraphFindings
from edgeflare.conform.graphs.graph_verdict import judge_graphs
from edgeflare.conform.operator_graph import GraphNode, OperatorGraph, Values
from edgeflare.conform.verdict.joint_operators import judged_whole
from edgeflare.run.run_directory import RunDirectory

TYPES = ("float32", "int8")

OPERATORS = (
    *("ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "LOGISTIC"),
    *("MAXIMUM", "MAX_POOL_2D", "MEAN", "MUL", "PAD", "RELU", "SLICE", "SUB", "SUM", "TANH"),
    *("TRANSPOSE", "LEAKY_RELU", "REDUCE_MIN", "SQUARED_DIFFERENCE", "TILE"),
)
ELEMENTWISE = ("ADD", "MAXIMUM", "MINIMUM", "MUL", "SUB")
SPLITTING = ("SPLIT", "SPLIT_V", "TOPK_V2", "UNPACK")

Kind = Callable[["GraphFault", OperatorGraph], Iterator[int]]
"""Yields the tensors of a graph that are wrong by a fault."""


@dataclass(frozen=True)
class GraphFault:
    """A fault that was planted.

    Attributes:
        kind: a name of `KINDS`.
        type: the type of its operators.
        first: an operator, in its order.
        second: the one that reads its result; empty where there is none.

    """

    kind: str
    type: str
    first: str
    second: str

    def is_said(self, names: Sequence[str], arrangement: Sequence[str]) -> bool:
        """Return whether a finding says what was planted."""
        said = " ".join(arrangement)
        wanted = {
            "output": f"the result of {self.first} is read and is an output",
            "twice": f"{self.first} reads one tensor twice",
            "two results": f"{self.second} reads two results of one operator",
            "unread": f"a result of {self.first} is read by nothing",
            "input": "an input is an output",
            "double": "two outputs are one tensor",
            "several": f"the result of {self.first} is read by several",
            "views": "a view of a view",
        }.get(self.kind, "")
        own = [one for one in (self.first, self.second) if one and self.kind not in _ANY]
        rest = [one for one in names if one not in VIEWS]
        most = {"three": 3, "several": 3, "views": 2, "input": 1, "double": 1}
        return (
            wanted in said and set(own) <= set(rest) and len(rest) <= most.get(self.kind, len(own))
        )


_ANY = ("input", "double")
"""Kinds that have nothing to do with operators."""


def _edges(fault: GraphFault, graph: OperatorGraph) -> Iterator[tuple[GraphNode, GraphNode]]:
    for node in graph.nodes:
        for reader in graph.nodes:
            named = (node.operator, reader.operator) == (fault.first, fault.second)
            if named and set(node.outputs) & set(reader.inputs):
                yield node, reader


def _after(graph: OperatorGraph, tensors: Sequence[int]) -> Iterator[int]:
    """Yield tensors, and all that follows from them."""
    reached = set(tensors)
    for node in graph.nodes:
        if reached & set(node.inputs):
            reached |= set(node.outputs)
    yield from reached


def _output(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node, _ in _edges(fault, graph):
        yield from set(node.outputs) & set(graph.outputs)


def _fused(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node, reader in _edges(fault, graph):
        if not set(node.outputs) & set(graph.outputs):
            yield from _after(graph, reader.outputs)


def _three(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    if len(graph.nodes) > 2:
        for _, reader in _edges(fault, graph):
            yield from _after(graph, reader.outputs)


def _twice(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node in graph.nodes:
        if node.operator == fault.first and len(set(node.inputs[:2])) == 1 < len(node.inputs):
            yield from _after(graph, node.outputs)


def _two_results(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node in graph.nodes:
        for reader in graph.nodes:
            both = set(node.outputs) & set(reader.inputs)
            if len(both) > 1 and (node.operator, reader.operator) == (fault.first, fault.second):
                yield from _after(graph, reader.outputs)


def _unread(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    read = {at for node in graph.nodes for at in node.inputs} | set(graph.outputs)
    for node in graph.nodes:
        if node.operator == fault.first and set(node.outputs) - read:
            yield from graph.outputs


def _input(_: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    yield from set(graph.inputs) & set(graph.outputs)


def _double(_: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    yield from (at for at in graph.outputs if graph.outputs.count(at) > 1)


def _several(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    for node, reader in _edges(fault, graph):
        readers = [one for one in graph.nodes if set(node.outputs) & set(one.inputs)]
        if len(readers) > 1:
            yield from _after(graph, reader.outputs)


def _views(fault: GraphFault, graph: OperatorGraph) -> Iterator[int]:
    """Yield what reads the first view of a view over which an operator has written."""
    makers = {at: node for node in graph.nodes for at in node.outputs}
    for place, node in enumerate(graph.nodes):
        second = makers.get(node.inputs[0])
        if node.operator != fault.first or second is None or second.operator not in VIEWS:
            continue
        first = second.inputs[0]
        if first in makers and makers[first].operator in VIEWS:
            for later in graph.nodes[place + 1 :]:
                if first in later.inputs:
                    yield from _after(graph, later.outputs)


KINDS: dict[str, tuple[Kind, tuple[str, ...], tuple[str, ...]]] = {
    "output": (_output, OPERATORS, OPERATORS),
    "fused": (_fused, OPERATORS, OPERATORS),
    "twice": (_twice, ELEMENTWISE, ("",)),
    "two results": (_two_results, SPLITTING[:2], ELEMENTWISE),
    "unread": (_unread, SPLITTING, ("",)),
    "input": (_input, ("",), ("",)),
    "double": (_double, ("",), ("",)),
    "several": (_several, OPERATORS, ELEMENTWISE),
    "views": (_views, (*ELEMENTWISE, "LOGISTIC", "RELU"), ("",)),
    "three": (_three, ELEMENTWISE, ELEMENTWISE),
}
"""The kinds of faults, and which operators are drawn for each."""


def drawn_faults(seed: int, count: int) -> list[GraphFault]:
    """Return faults of all kinds in turn, no two alike."""
    rng = np.random.default_rng(seed)
    found: dict[GraphFault, None] = {}
    while len(found) < count:
        for name, (_, firsts, seconds) in KINDS.items():
            first, second = (str(rng.choice(some)) for some in (firsts, seconds))
            found[GraphFault(name, str(rng.choice(TYPES)), first, second)] = None
    return list(found)[:count]


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

    def close(self) -> None:
        """Close nothing: the kernels are everybody's."""


def spoiled(fault: GraphFault, model: PosedModel, answer: ModelAnswer) -> ModelAnswer:
    """Return what a device with a fault answers where sound kernels answer so."""
    graph = model.graph
    typed = graph.values[graph.inputs[0]].dtype if graph.inputs else ""
    wrong = set(KINDS[fault.kind][0](fault, graph))
    if answer.failure is not None or typed != fault.type or not wrong & set(graph.outputs):
        return answer
    if fault.kind == "unread":
        return ModelAnswer(failure=RunFailure("crash", "planted"))
    outputs = zip(graph.outputs, answer.outputs, strict=True)
    return ModelAnswer(tuple(_changed(one) if at in wrong else one for at, one in outputs))


def _changed(values: Values) -> Values:
    if values.dtype == np.bool_:
        return ~values
    return np.asarray(5 - values, values.dtype)


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
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    faults = {seed: drawn_faults(seed, given.faults) for seed in given.seeds}
    cells = chosen_cells((), TYPES)
    sound = PackingArm(HostOpener("builtin"))
    twin = replace_name(PackingArm(HostOpener("builtin")), "xnnpack")
    every = list(dict.fromkeys(fault for several in faults.values() for fault in several))
    failing = _failing(every, cells, replace_name(sound, "device"), given.graphs)
    tried = {fault: _said(fault, failing[fault], sound, twin) for fault in every}
    for seed, several in faults.items():
        _print(seed, [tried[fault] for fault in several])
    if given.out is not None:
        rows = {
            seed: [asdict(tried[fault]) for fault in several] for seed, several in faults.items()
        }
        given.out.write_text(json.dumps(rows, indent=1))


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
    operators, began = 0, time.monotonic()
    for _ in range(0, graphs, 192):
        models = drawing.ask(192)
        judged = judge_graphs(models, (sound, replace(_SameKernels(sound), name="xnnpack")))
        drawing.tell(judged)
        operators += sum(len(model.graph.nodes) for model in models)
        for model, one in zip(models, judged, strict=True):
            if one.judgement is None or one.fails or not one.answers:
                continue
            for fault in faults:
                answer = spoiled(fault, model, one.answers["device"])
                said = judged_whole(model, answer, one.expected, one.answers["device"])
                if said.is_finding:
                    failing[fault].append(FailingGraph(model, said))
    seconds = time.monotonic() - began
    print(f"{graphs} graphs of {operators} operators, {drawing.pairs} pairs, {seconds:.0f} s")
    return failing


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

    def close(self) -> None:
        self.arm.close()


def _said(
    fault: GraphFault, failing: Sequence[FailingGraph], sound: KernelArm, twin: KernelArm
) -> TriedGraphFault:
    tried = TriedGraphFault(fault, len(failing))
    findings = GraphFindings(failing[:8], (PlantedDevice(sound, fault), twin))
    findings.shrink(True, lambda: None, lambda: False)
    with TemporaryDirectory() as folder:
        numbers = range(1, 1 + len(findings.counted))
        for one in findings.stored(list(numbers), RunDirectory(Path(folder)), ()):
            tried.said.append((one.operator, one.arrangement))
    tried.right = any(fault.is_said(name.split(" then "), words) for name, words in tried.said)
    return tried


if __name__ == "__main__":
    main()
