"""The variables of a model: what it keeps of one inference for the next, without being told.

They are tensors that the file calls variables, as the states of fused recurrent operators are, and
resources that ASSIGN_VARIABLE writes. A resource that is only read is a constant, whatever
initializes it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_structure import CALLED, operator_name
from edgeflare.models.pair import Pair
from edgeflare.models.run_pair import KeptVariables, Variable
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import tensor_indexes

_MOST_CALLS = 1000
"""Most calls of graphs with different resources: a model has a handful of loops."""


def pair_variables(pair: Pair) -> KeptVariables | None:
    """Return the variables of the models of a pair; None where they keep nothing.

    Of an original that is no `.tflite` file, or is not there, none are known.
    """
    signature = pair.interface.invocation.signature
    found = KeptVariables(
        original=file_variables(pair.original or "", signature) or None,
        compressed=file_variables(str(pair.compressed), signature) or None,
    )
    return None if found == KeptVariables() else found


def file_variables(model: str, signature: str = "") -> tuple[Variable, ...]:
    """Return the variables of a `.tflite` file; none of another or a missing file."""
    path = Path(model)
    if not model.lower().endswith(".tflite") or not path.is_file():
        return ()
    return model_variables(read_model_file(path), model, signature)


def model_variables(content: bytes, source: str, signature: str = "") -> tuple[Variable, ...]:
    """Return the variables of a model, each once, in the order in which they are written.

    Args:
        content: a `.tflite` file.
        source: what the user calls it, for messages.
        signature: name of the signature that is run; the first graph unless said.

    """
    model = read_model(content, source)
    graphs = {
        (known.signatureKey or b"").decode(errors="replace"): int(known.subgraphIndex)
        for known in model.signatureDefs or []
    }
    found: dict[tuple[str, int, int], Variable] = {}
    try:
        for key, variable in _written(model, graphs.get(signature, 0), {}, set()):
            found.setdefault(key, variable)
    except (_EndlessCalls, RecursionError):
        raise UserError(f"{source}: its graphs call each other without end") from None
    return tuple(found.values())


class _EndlessCalls(Exception):  # noqa: N818 - a fact about a model
    """Graphs are called more often than those of any model."""


def _written(
    model: Any, at: int, given: Mapping[int, str], seen: set[tuple[int, tuple[Any, ...]]]
) -> Iterator[tuple[tuple[str, int, int], Variable]]:
    """Yield the variables that a graph and those that it calls write, each with what tells it.

    That is its name of a resource, and of a tensor its graph and its position there.

    Args:
        model: the file, as `read_model` unpacked it.
        at: position of the graph.
        given: the names of resources that the graph is given, by its tensors.
        seen: the graphs that were gone through, each with what it was given.

    """
    seen.add((at, tuple(given.items())))
    if len(seen) > _MOST_CALLS:
        raise _EndlessCalls
    graph, handles = model.subgraphs[at], dict(given)
    for index, operator in enumerate(graph.operators or []):
        name = operator_name(model.operatorCodes[operator.opcodeIndex])
        read, options = tensor_indexes(operator.inputs), operator.builtinOptions
        if name == "VAR_HANDLE":
            handle = tensor_indexes(operator.outputs)[0]
            shared = _text(getattr(options, "sharedName", None))
            handles[handle] = shared or _text(graph.tensors[handle].name)
        elif name == "ASSIGN_VARIABLE":
            named = handles.get(read[0]) or _text(graph.tensors[read[0]].name)
            yield (named, -1, -1), Variable(named, name, index)
        for tensor in read:
            if graph.tensors[tensor].isVariable:
                named = _text(graph.tensors[tensor].name) or f"tensor {tensor}"
                yield ("", at, tensor), Variable(named, name, index)
        for called in {int(getattr(options, key)) for key in CALLED if hasattr(options, key)}:
            inner = tensor_indexes(model.subgraphs[called].inputs)
            # A branch of IF is not given the condition, which comes first.
            passed = zip(inner, read[max(0, len(read) - len(inner)) :], strict=False)
            known = {tensor: handles[outer] for tensor, outer in passed if outer in handles}
            if (called, tuple(known.items())) not in seen:
                yield from _written(model, called, known, seen)


def _text(name: bytes | str | None) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name or ""
