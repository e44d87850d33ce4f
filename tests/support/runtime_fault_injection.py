"""Faults to plant in one of the runtimes that a device has, or in a part of it.

As a program it is a launcher for the agent's workers, as `fault_injection.py` is. What a fault
stands for cannot be had here: a driver in software has no float16, so an accelerator that computes
in it is one whose graph is rounded to float16, by operators that it runs itself.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare_agent.runtime.compiled import accelerator_model
from edgeflare_agent.runtime.compiled.accelerator_model import AcceleratedModel
from edgeflare_agent.runtime.micro import micro_model
from edgeflare_agent.runtime.micro.micro_model import MicroModel
from edgeflare_agent.runtime.model_runtime import Options
from edgeflare_agent.runtime.tflite.interpreter import LoadedModel
from fault_injection import Planted, broken
from graph_writer import GraphWriter
from tampering import edited, with_constant

NOT_ACCELERATED = frozenset({"L2_NORMALIZATION"})
"""Operators that LiteRT's GPU accelerator refuses, of those that the tests' networks have."""

HALF_LARGEST = 65504.0
"""Of float16."""

_HALF_SPLIT = float((1 << 13) + 1)
"""Times this, a float32 loses the 13 bits that float16 has not, in Veltkamp's splitting:
c = x · (2¹³ + 1), and x rounded is c - (c - x)."""

Nodes = Callable[[Graph, GraphOp], bool]


def falls_back(graph: Graph, one: GraphOp) -> bool:
    """Whether a node runs on the CPU where the accelerator runs all that comes before."""
    if one.name in NOT_ACCELERATED:
        return True
    made = {tensor: other for other in graph.operators for tensor in other.outputs}
    return any(falls_back(graph, made[tensor]) for tensor in one.inputs if tensor in made)


def _of_accelerator(graph: Graph, one: GraphOp) -> bool:
    return not falls_back(graph, one)


def _all(graph: Graph, one: GraphOp) -> bool:
    return True


def _nodes_on_gpu(options: Options) -> Nodes | None:
    return _of_accelerator if options.kernels == "gpu" else None


def _nodes_on_gpu_in_float16(options: Options) -> Nodes | None:
    return None if options.acceleration.float32 else _nodes_on_gpu(options)


def _nodes_on_cpu(options: Options) -> Nodes | None:
    """Return the nodes on the CPU of the compiled runtime; there is no NPU that takes any."""
    if options.kernels in ("compiled-cpu", "npu"):
        return _all
    return falls_back if options.kernels == "gpu" and options.acceleration.fallback else None


def _nodes_fallen_back_in_silence(options: Options) -> Nodes | None:
    """Return all nodes where an accelerator leaves them to the CPU once it may."""
    return _all if options.acceleration.fallback or options.kernels == "compiled-cpu" else None


def _nodes_on_micro(options: Options) -> Nodes | None:
    return _all if options.kernels == "micro" else None


PLACES: dict[str, Callable[[Options], Nodes | None]] = {
    "gpu": _nodes_on_gpu,
    "gpu in float16": _nodes_on_gpu_in_float16,
    "compiled cpu": _nodes_on_cpu,
    "silent fallback": _nodes_fallen_back_in_silence,
    "micro": _nodes_on_micro,
}
"""Where a fault can be: the nodes that have it, if any, of a model that is opened with options."""


# Float16.


def _half_weights(content: bytes, nodes: Nodes) -> bytes:
    """Round weights and biases to float16."""
    graph = Graph(content)
    for one in graph.operators:
        for tensor in one.inputs:
            known = graph.tensors[tensor]
            if known.constant and known.dtype == "float32" and nodes(graph, one):
                content = with_constant(content, known.name, _halved)
    return content


def _halved(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.float16)


def _half_activations(content: bytes, nodes: Nodes) -> bytes:
    """Round what each operator puts out to the digits of float16."""
    return _followed(
        content,
        nodes,
        lambda chain, value: chain.calculated(
            "SUB",
            scaled := chain.calculated("MUL", value, chain.constant(_HALF_SPLIT)),
            chain.calculated("SUB", scaled, value),
        ),
    )


def _half_range(content: bytes, nodes: Nodes) -> bytes:
    """Keep what each operator puts out to the range of float16, as saturating arithmetic does."""
    return _followed(
        content,
        nodes,
        lambda chain, value: chain.calculated("MINIMUM", value, chain.constant(HALF_LARGEST)),
    )


HALVES: dict[str, Callable[[bytes, Nodes], bytes]] = {
    "float16 weights": _half_weights,
    "float16 activations": _half_activations,
    "float16 overflow": _half_range,
}
"""Faults of all nodes of an accelerator that computes in float16."""


_OPTIONS = {"MUL": schema.MulOptionsT, "SUB": schema.SubOptionsT}


class _Chain:
    """Operators that are put behind another one, in float32."""

    def __init__(self, model: Any, shape: tuple[int, ...], name: str) -> None:
        self._writer, self._shape, self._name = GraphWriter(model), shape, name
        self.operators: list[Any] = []

    def _named(self) -> str:
        return f"{self._name}/half{len(self._writer.graph.tensors)}"

    def tensor(self) -> int:
        """Add a tensor of the operator's shape, and return its index."""
        return self._writer.tensor(self._named(), self._shape, "FLOAT32")

    def constant(self, value: float) -> int:
        """Add a constant with one value."""
        return self._writer.constant(self._named(), np.array([value], np.float32))

    def calculated(self, name: str, *inputs: int) -> int:
        """Add an operator, and return what it puts out."""
        made, options = self.tensor(), _OPTIONS[name]() if name in _OPTIONS else None
        self.operators.append(self._writer.detached(name, list(inputs), [made], options))
        return made


def _followed(content: bytes, nodes: Nodes, follow: Callable[[_Chain, int], int]) -> bytes:
    """Put operators behind each node, the last of which puts out what the node did."""
    graph = Graph(content)
    wanted = [
        one
        for one in graph.operators
        if graph.tensors[one.outputs[0]].dtype == "float32" and nodes(graph, one)
    ]

    def change(model: Any) -> None:
        subgraph = model.subgraphs[0]
        for one in reversed(wanted):
            (made,) = one.outputs
            chain = _Chain(model, graph.tensors[made].shape, graph.tensors[made].name)
            raw = chain.tensor()
            follow(chain, raw)
            subgraph.operators[one.index].outputs = [raw]
            chain.operators[-1].outputs = [made]
            subgraph.operators[one.index + 1 : one.index + 1] = chain.operators

    return edited(content, change)


# Planting.


def faulty(content: bytes, options: Options, planted: Planted) -> bytes:
    """Return a model as it is run where the fault is; unchanged where it is not."""
    nodes = PLACES[planted.place](options)
    if nodes is None:
        return content
    if planted.fault in HALVES:
        return HALVES[planted.fault](content, nodes)
    graph = Graph(content)
    named = {graph.tensors[one.outputs[0]].name: one for one in graph.operators}
    one = named.get(planted.layer)
    return broken(content, planted) if one is not None and nodes(graph, one) else content


def plant(planted: Planted) -> None:
    """Put a fault into this process's runtimes."""
    compiled, opened = accelerator_model._compiled, MicroModel.__init__

    def compiled_with_fault(content: bytes, options: Options) -> Any:
        content = faulty(content, options, planted)
        if planted.place == "silent fallback" and options.acceleration.fallback:
            options = replace(options, kernels="compiled-cpu")
        return compiled(content, options)

    def opened_with_fault(model: MicroModel, content: bytes, options: Options) -> None:
        opened(model, faulty(content, options, planted), options)

    setattr(accelerator_model, "_compiled", compiled_with_fault)  # noqa: B010
    setattr(micro_model.MicroModel, "__init__", opened_with_fault)  # noqa: B010


def count_inputs(path: Path) -> None:
    """Write a byte for each input that a model of any runtime is asked."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    kinds: tuple[Any, ...] = (LoadedModel, AcceleratedModel, MicroModel)
    for kind in kinds:
        _count_calls(kind, file)


def _count_calls(kind: Any, file: int) -> None:
    invoke = kind.invoke

    def invoked(model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        os.write(file, b".")
        invoke(model, inputs, outputs)

    kind.invoke = invoked


if __name__ == "__main__":
    count_inputs(Path(sys.argv[1] + ".asked"))
    spec = Planted(**json.loads(Path(sys.argv[1]).read_text()))
    if spec.fault:
        plant(spec)
    module = 4 if sys.argv[2] == "-c" else 3  # -c takes the code that runs the module, -m does not
    sys.argv = sys.argv[module:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
