"""Variables of a file that are assigned before they are read, in the same invocation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgeflare.models.tflite_graph import Graph


@dataclass(frozen=True, slots=True)
class AssignedVariables:
    """Variables that keep nothing from one invocation to the next.

    Attributes:
        sources: the tensor that was assigned last before each operator that reads a variable, by
            the operator's place.
        names: the variables' names, likewise.
        folded: places of the operators that name and assign these variables.

    """

    sources: Mapping[int, int]
    names: Mapping[int, str]
    folded: frozenset[int]


def assigned_variables(graph: Graph) -> AssignedVariables:
    """Return the variables of a file each reading of which comes behind an assignment."""
    handles: dict[int, str] = {}
    last: dict[str, int] = {}
    kept: set[str] = set()
    sources: dict[int, int] = {}
    names: dict[int, str] = {}
    parts: dict[int, str] = {}
    for operator in graph.operators:
        if operator.name == "VAR_HANDLE":
            name = graph.options(operator.index)["sharedName"] or b""
            handles[operator.outputs[0]] = parts[operator.index] = name.decode(errors="replace")
            continue
        variable = handles.get(operator.inputs[0], "") if operator.inputs else ""
        if operator.name == "ASSIGN_VARIABLE":
            last[variable], parts[operator.index] = operator.inputs[1], variable
        elif operator.name == "READ_VARIABLE" and variable in last:
            sources[operator.index], names[operator.index] = last[variable], variable
        elif operator.name in ("READ_VARIABLE", "CALL_ONCE"):
            kept.update({variable} if operator.inputs else {*handles.values(), variable})
    return AssignedVariables(
        {at: tensor for at, tensor in sources.items() if names[at] not in kept},
        {at: name for at, name in names.items() if name not in kept},
        frozenset(at for at, name in parts.items() if name in {*names.values()} - kept),
    )
