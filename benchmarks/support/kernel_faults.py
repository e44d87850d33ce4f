"""Plants faults of kernels in what runs models on a device.

As a program it is a launcher for the agent's workers, `python kernel_faults.py SPEC -m MODULE …`:
it runs the module as Python would, with the faults of the file SPEC in the runtime. SPEC has a
list of objects with the fields of `KernelFault`, as JSON.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from edgeflare.conform.drafts.file_operators import FileOperator, file_operators
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import OperatorGraph, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import UnknownOperatorForm
from edgeflare.errors import UserError
from edgeflare_agent.runtime.model_runtime import Options
from edgeflare_agent.runtime.tflite.interpreter import LoadedModel
from kernel_fault_catalogue import KernelFault, settings_of
from kernel_fault_kinds import wrong_answer
from operator_run import OperatorRun

_FOR_EVER = 3600.0


@dataclass
class FaultyStep:
    """An operator of a loaded model that has a fault, or that is joined to one that has.

    Attributes:
        operator: it.
        fault: its own; None if it has none.
        alone: a model of it alone; None for one that is joined to none, whose sound answer the
            loaded model gives.
        before: what its sound kernel answered before.

    """

    operator: FileOperator
    fault: KernelFault | None
    alone: LoadedModel | None = None
    before: list[Values] | None = field(default=None)


class FaultyModel:
    """What faults do to a loaded model."""

    def __init__(self, faults: Sequence[KernelFault], content: bytes, options: Options) -> None:
        self._steps: list[FaultyStep] = []
        try:
            known = file_operators(content, "the model")
        except UserError:
            return
        faulty = {one.place: fault for one in known if (fault := _fault_of(one, faults))}
        for part in _joined_parts(known):
            places = {one.place for one in part}
            if places & faulty.keys() and all(one.graph is not None for one in part):
                alone = len(part) == 1
                self._steps += [_step(one, faulty.get(one.place), options, alone) for one in part]

    def begin(self) -> None:
        """Crash or hang if an operator's fault is that."""
        effects = {one.fault.what.effect for one in self._steps if one.fault is not None}
        if "crash" in effects:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "hang" in effects:
            time.sleep(_FOR_EVER)

    def spoil(self, model: LoadedModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Put the answers of faulty kernels in the place of the sound ones."""
        if not self._steps:
            return
        given = zip(model.inputs, inputs, strict=True)
        tensors: dict[int, Values] = {spec.index: np.array(values) for spec, values in given}
        sound = {spec.index: values for spec, values in zip(model.outputs, outputs, strict=True)}
        for step in self._steps:
            self._take(step, tensors, sound)
        for at, values in sound.items():
            if at in tensors:
                values[...] = tensors[at]

    def _take(
        self, step: FaultyStep, tensors: dict[int, Values], sound: Mapping[int, Values]
    ) -> None:
        graph = step.operator.graph
        assert graph is not None
        row = [tensors[at] for at in step.operator.reads]
        if step.alone is None:
            made = [np.array(sound[at]) for at in step.operator.writes]
        else:
            made = _run_alone(step.alone, graph, row)
        if step.fault is not None:
            run = OperatorRun.of(graph, row)
            wrong = wrong_answer(step.fault.what, run, made, step.before)
            step.before, made = made, wrong
        tensors.update(zip(step.operator.writes, made, strict=True))


def plant(faults: Sequence[KernelFault]) -> None:
    """Put faults into this process's runtime; of two in one operator, the first is it."""
    load, invoke = LoadedModel.__init__, LoadedModel.invoke
    faulty: WeakKeyDictionary[LoadedModel, FaultyModel] = WeakKeyDictionary()
    loading: list[LoadedModel] = []

    def loaded(model: LoadedModel, content: bytes, options: Options) -> None:
        load(model, content, options)
        # Models of operators alone are loaded in the course of this, and are sound.
        if not loading:
            loading.append(model)
            faulty[model] = FaultyModel(faults, content, options)
            loading.clear()

    def invoked(model: LoadedModel, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        known = faulty.get(model)
        if known is None:
            invoke(model, inputs, outputs)
            return
        known.begin()
        invoke(model, inputs, outputs)
        known.spoil(model, inputs, outputs)

    setattr(LoadedModel, "__init__", loaded)  # noqa: B010
    setattr(LoadedModel, "invoke", invoked)  # noqa: B010


def _fault_of(one: FileOperator, faults: Sequence[KernelFault]) -> KernelFault | None:
    """Return the fault that an operator has, None for a sound one."""
    likely = [fault for fault in faults if fault.operator == one.name]
    if not likely or one.graph is None:
        return None
    specification = known_operators()[one.name]
    try:
        reading = specification.read(one.graph)
    except UnknownOperatorForm:
        return None
    settings = settings_of(specification, reading.type, reading.configuration)
    held = (one for one in likely if one.type == reading.type and one.holds(settings))
    return next(held, None)


def _joined_parts(known: Sequence[FileOperator]) -> list[list[FileOperator]]:
    """Return the operators that feed each other, directly or not, in the file's order."""
    parts: list[list[FileOperator]] = []
    for one in known:
        touched = [part for part in parts if any(set(one.reads) & set(o.writes) for o in part)]
        apart = [part for part in parts if part not in touched]
        parts = [*apart, [*(other for part in touched for other in part), one]]
    return [sorted(part, key=lambda one: one.place) for part in parts]


def _step(
    one: FileOperator, fault: KernelFault | None, options: Options, alone: bool
) -> FaultyStep:
    assert one.graph is not None
    model = None if alone else LoadedModel(graph_file(one.graph), options)
    return FaultyStep(one, fault, model)


def _run_alone(model: LoadedModel, graph: OperatorGraph, row: Sequence[Values]) -> list[Values]:
    given = dict(zip(graph.inputs, row, strict=True))
    made = {spec.index: np.empty(spec.shape, spec.dtype) for spec in model.outputs}
    model.invoke([given[spec.index] for spec in model.inputs], list(made.values()))
    return [made[at] for at in graph.outputs]


if __name__ == "__main__":
    plant([KernelFault.of(one) for one in json.loads(Path(sys.argv[1]).read_text())])
    module = 4 if sys.argv[2] == "-c" else 3  # -c takes the code that runs the module, -m does not
    sys.argv = sys.argv[module:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
