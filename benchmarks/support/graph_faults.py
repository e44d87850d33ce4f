"""Plants a fault of graphs in what runs models on a device.

As a program it is a launcher for the agent's workers, `python graph_faults.py SPEC -m MODULE …`: it
runs the module as Python would, with the fault of the file SPEC in the runtime. SPEC has the fields
of `GraphFault`, as JSON. A file may hold many models beside each other: the fault is in each by
itself.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from edgeflare.conform.operator_graph import ABSENT, GraphNode, GraphValue, OperatorGraph
from edgeflare.models.tflite_graph import Graph
from edgeflare_agent.runtime.model_runtime import Options, Step
from edgeflare_agent.runtime.tflite.interpreter import LoadedModel
from graph_fault_kinds import KEEPING, GraphFault, changed, wrong_outputs


def plant(fault: GraphFault) -> None:
    """Put a fault into this process's runtime."""
    if fault.kind in KEEPING:
        _plant_in_turns(fault)
        return
    load, invoke = LoadedModel.__init__, LoadedModel.invoke
    wrong: WeakKeyDictionary[LoadedModel, list[int]] = WeakKeyDictionary()

    def loaded(model: LoadedModel, content: bytes, options: Options) -> None:
        load(model, content, options)
        wrong[model] = _wrong_places(fault, content)

    def invoked(model: LoadedModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        places = wrong.get(model, [])
        if places and fault.kind == "unread":
            os.kill(os.getpid(), signal.SIGSEGV)
        invoke(model, inputs, outputs)
        for place in places:
            outputs[place][...] = changed(outputs[place])

    setattr(LoadedModel, "__init__", loaded)  # noqa: B010
    setattr(LoadedModel, "invoke", invoked)  # noqa: B010


def _plant_in_turns(fault: GraphFault) -> None:
    """Have an operator compute in the second of all turns as in the one before."""
    load, reset, take, run = (
        getattr(LoadedModel, name) for name in ("__init__", "reset", "take", "step")
    )
    wrong: WeakKeyDictionary[LoadedModel, list[int]] = WeakKeyDictionary()
    turns: WeakKeyDictionary[LoadedModel, int] = WeakKeyDictionary()

    def loaded(model: LoadedModel, content: bytes, options: Options) -> None:
        load(model, content, options)
        signatures = any(step.signature for step in options.invocation.steps)
        planted = signatures == (KEEPING[fault.kind] == "signatures")
        wrong[model] = _wrong_places(fault, content) if planted else []

    def opened_anew(model: LoadedModel) -> None:
        turns[model] = 0
        reset(model)

    def taken(model: LoadedModel, step: Step) -> None:
        turns[model] = turns.get(model, 0) + 1
        take(model, step)

    def invoked(model: LoadedModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        run(model, inputs, outputs)
        for place in wrong[model] if turns.get(model) == 2 else ():
            outputs[place][...] = changed(outputs[place])

    planted = {"__init__": loaded, "reset": opened_anew, "take": taken, "step": invoked}
    for name, function in planted.items():
        setattr(LoadedModel, name, function)


def _wrong_places(fault: GraphFault, content: bytes) -> list[int]:
    """Return the places of the outputs of a file that are wrong by a fault."""
    whole = _graph(Graph(content))
    wrong: set[int] = set()
    for part in _parts(whole):
        wrong |= wrong_outputs(fault, part)
    return [place for place, at in enumerate(whole.outputs) if at in wrong]


def _graph(read: Graph) -> OperatorGraph:
    """Return a file's graph, with no values: constants may be tensors that nothing reads."""
    values = tuple(
        GraphValue(tensor.dtype, (), values=np.zeros(0) if tensor.constant else None)
        for tensor in read.tensors
    )
    raw = read.model.subgraphs[0].operators
    nodes = tuple(
        GraphNode(operator.name, tuple(map(int, raw[at].inputs)), tuple(operator.outputs))
        for at, operator in enumerate(read.operators)
    )
    return OperatorGraph(values, nodes, tuple(read.inputs), tuple(read.outputs))


def _parts(whole: OperatorGraph) -> list[OperatorGraph]:
    """Return the graphs that lie beside each other: operators that share a tensor are of one."""
    joined: list[tuple[list[GraphNode], set[int]]] = []
    for node in whole.nodes:
        own = {
            at
            for at in (*node.inputs, *node.outputs)
            if at != ABSENT and whole.values[at].values is None
        }
        touched = [part for part in joined if part[1] & own]
        joined = [part for part in joined if part not in touched]
        nodes = [earlier for part in touched for earlier in part[0]]
        joined.append(([*nodes, node], own.union(*(part[1] for part in touched))))
    order = {id(node): place for place, node in enumerate(whole.nodes)}
    return [
        OperatorGraph(
            whole.values,
            tuple(sorted(nodes, key=lambda node: order[id(node)])),
            tuple(at for at in whole.inputs if at in tensors),
            tuple(at for at in whole.outputs if at in tensors),
        )
        for nodes, tensors in joined
    ]


if __name__ == "__main__":
    plant(GraphFault(**json.loads(Path(sys.argv[1]).read_text())))
    module = 4 if sys.argv[2] == "-c" else 3  # -c takes the code that runs the module, -m does not
    sys.argv = sys.argv[module:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
