"""A launcher for the agent's workers, in which some operators end badly.

Called as `python deadly_operators.py EFFECTS -c … MODULE ARGUMENT…`, it runs the module as Python
would. EFFECTS is JSON: what happens, by the name of an operator.

    crash          the process dies when the operator runs
    crash loading  the process dies when a model with the operator is loaded
    hang           the operator never ends
    error          the runtime answers with an error that names no node
    crash beside   the process dies when the operator runs behind any other model
    read beside    the operator's answer depends on whether another model runs before it
    write beside   the answers of all models after it are changed
    overwrite      the operator overwrites live memory of the next model of the file
    overwrite NAME … of the next model with the operator NAME

For the last five the models of a file are run one after the other, each by an interpreter of its
own, all in one process.
"""

from __future__ import annotations

import copy
import ctypes
import json
import os
import runpy
import signal
import sys
import time
from typing import Any

from edgeflare_agent.runtime.model_runtime import Options
from edgeflare_agent.runtime.tflite import interpreter as agent_interpreter

OVERWRITTEN_BYTES = 64
"""The pointers to the graph are among the first of the runtime's object."""


def deadly_launcher(effects: dict[str, str]) -> list[str]:
    """Return the command of workers in which operators, by name, end badly."""
    return [sys.executable, __file__, json.dumps(effects)]


class PartByPart:
    """A file's models, one after the other; otherwise its interpreter."""

    def __init__(self, whole: Any, content: bytes, effects: dict[str, str]) -> None:
        self._whole = whole
        self._effects = effects
        self._parts = [
            PackedModel(model, names, tensors) for model, names, tensors in parts(content)
        ]
        self._given: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def set_tensor(self, index: int, values: Any) -> None:
        self._given[index] = values

    def get_tensor(self, index: int) -> Any:
        for number, part in enumerate(self._parts):
            if index in part.tensors:
                values = part.interpreter.get_tensor(part.tensors.index(index))
                before = [one for each in self._parts[:number] for one in self._effects_of(each)]
                reads = number and "read beside" in self._effects_of(part)
                beside = reads or "write beside" in before
                return values + values.dtype.type(1) if beside else values
        return self._given[index]

    def invoke(self) -> None:
        for number, part in enumerate(self._parts):
            effects = self._effects_of(part)
            if "crash beside" in effects and number:
                os.kill(os.getpid(), signal.SIGSEGV)
            part.invoke(self._given)
            for effect in effects:
                if effect.startswith("overwrite"):
                    self._overwrite(number + 1, effect.removeprefix("overwrite").strip())

    def _effects_of(self, part: PackedModel) -> list[str]:
        return [self._effects.get(name, "") for name in part.operators]

    def _overwrite(self, begin: int, operator: str) -> None:
        for part in self._parts[begin:]:
            if not operator or operator in part.operators:
                # The runtime's object is what the first word behind the Python object points to.
                wrapper = id(part.interpreter._interpreter) + object.__basicsize__
                address = ctypes.c_void_p.from_address(wrapper).value
                ctypes.memset(address or 0, 0xA5, OVERWRITTEN_BYTES)
                return


class PackedModel:
    """One of a file's models; `tensors` are its tensors' places in the file."""

    def __init__(self, content: bytes, operators: list[str], tensors: list[int]) -> None:
        self.operators = operators
        self.tensors = tensors
        from ai_edge_litert.interpreter import (  # noqa: PLC0415 - a worker should start fast
            Interpreter,
            OpResolverType,
        )

        self.interpreter = Interpreter(
            model_content=content,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        self.interpreter.allocate_tensors()

    def invoke(self, given: dict[int, Any]) -> None:
        for details in self.interpreter.get_input_details():
            self.interpreter.set_tensor(details["index"], given[self.tensors[details["index"]]])
        self.interpreter.invoke()


def parts(content: bytes) -> list[tuple[bytes, list[str], list[int]]]:
    """Return a file's models: content, names of operators, and tensors' places in the file."""
    from ai_edge_litert import schema_py_generated as schema  # noqa: PLC0415 - likewise

    from edgeflare.models.tflite_writer import written  # noqa: PLC0415

    model = schema.ModelT.InitFromPackedBuf(content)
    graph = model.subgraphs[0]
    names = {value: name for name, value in vars(schema.BuiltinOperator).items()}
    found = []
    for operators in _connected(graph.operators):
        one, main = copy.copy(model), copy.copy(graph)
        used = sorted({at for each in operators for at in _tensors(each)})
        places = {at: place for place, at in enumerate(used)}
        one.subgraphs, main.operators = [main], [copy.copy(each) for each in operators]
        main.tensors = [graph.tensors[at] for at in used]
        for each in main.operators:
            each.inputs = [places.get(at, -1) for at in each.inputs]
            each.outputs = [places[at] for at in each.outputs]
        main.inputs = [places[at] for at in graph.inputs if at in places]
        main.outputs = [places[at] for at in graph.outputs if at in places]
        codes = [model.operatorCodes[each.opcodeIndex].builtinCode for each in operators]
        found.append((written(one), [names[code] for code in codes], used))
    return found


def _connected(operators: list[Any]) -> list[list[Any]]:
    """Return operators that share tensors together; those of a model follow one another."""
    groups: list[tuple[set[int], list[Any]]] = []
    for one in operators:
        tensors = _tensors(one)
        if groups and groups[-1][0] & tensors:
            groups[-1][0].update(tensors)
            groups[-1][1].append(one)
        else:
            groups.append((tensors, [one]))
    return [members for _, members in groups]


def _tensors(operator: Any) -> set[int]:
    return {int(at) for at in (*operator.inputs, *operator.outputs) if at >= 0}


class Deadly:
    """An interpreter that fails when it is invoked."""

    def __init__(self, whole: Any, effect: str) -> None:
        self._whole = whole
        self._effect = effect

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def invoke(self) -> None:
        if self._effect == "error":
            raise RuntimeError("the accelerator is not in the mood")
        if self._effect == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        while True:
            time.sleep(60)


def plant(effects: dict[str, str]) -> None:
    """Put effects into this process's runtime."""
    load = agent_interpreter._load

    def loaded(content: bytes, options: Options) -> Any:
        whole, tensors, external_nodes = load(content, options)
        found = {effects.get(one["op_name"], "") for one in whole._get_ops_details()}
        if "crash loading" in found:
            os.kill(os.getpid(), signal.SIGFPE)
        for effect in ("crash", "hang", "error"):
            if effect in found:
                return Deadly(whole, effect), tensors, external_nodes
        if any("overwrite" in one or "beside" in one for one in found):
            return PartByPart(whole, content, effects), tensors, external_nodes
        return whole, tensors, external_nodes

    setattr(agent_interpreter, "_load", loaded)  # noqa: B010


if __name__ == "__main__":
    plant(json.loads(sys.argv[1]))
    sys.argv = sys.argv[4:]  # after the effects, -c and what it runs
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
