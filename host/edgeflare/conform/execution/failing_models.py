"""Which models of a pack a failure names, as the agent's runtimes tell it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from edgeflare.conform.execution.kernel_arm import PosedModel, RunFailure
from edgeflare.conform.operator_graph import GraphNode

_FAILED_NODE = re.compile(r"Node number (?P<number>\d+) \((?P<operator>\w+)\) failed to")
_REFUSED_NODE = re.compile(r" refuses (?P<operator>\w+), node (?P<number>\d+): ")
"""How a runtime without delegates, whose nodes have numbers too, names the first node that it
refuses (`ModelRuntime.open`): there is no doubt which one that is."""

_FAILED_RESULT = re.compile(r"(?:output|tensor) t(\d+) has shape")
_MISSHAPEN = re.compile(r"output t\d+ has shape .*, declared ")

_MISSING = (
    re.compile(r" has no operator (?P<operator>\w+)(?: version (?P<version>\d+))?"),
    re.compile(r" and not (?P<operator>\w+): (?:Operation is not supported|Not supported op )"),
)
"""How the agent's runtime says that no model with such an operator can load. Of an accelerator's
reasons, these two speak of the operator alone; "Not supported Cast case. Input type: …" and others
that begin alike speak of types or shapes, with which it may take the operator."""

_COUNTED = re.compile(r"takes \d+ of \d+ nodes, and not (?P<reasons>.+)(?=: set fallback)")
_REASON = re.compile(
    r"(?:^|; )(?P<operator>[A-Z][A-Z0-9_]+): (?P<reason>.*?)(?=; [A-Z][A-Z0-9_]+: |$)"
)
"""How the agent's runtime says which operators an accelerator refuses, each with the reason."""

_UNKNOWN = re.compile(r"Operation is not supported|Not supported op ")
_LATER = re.compile(r"Max version supported: (\d+)\.")
_TENSOR = re.compile(r"\bt(\d+)\b")
"""How an accelerator's reason says which nodes with the operator it means: all, those of later
versions, that of a tensor. Others say no more than that there is one."""

MissingOperator = tuple[str, int | None]
"""An operator that a runtime lacks, and the version, None for all."""


def refusals(models: Sequence[PosedModel], failure: RunFailure) -> dict[int, RunFailure]:
    """Return the models of a pack that are refused beyond doubt.

    Args:
        models: the pack's, in their order.
        failure: what the runtime says of the pack.

    Returns:
        By their places, what is said of each alone; nothing for a failure that leaves doubt.

    """
    if failure.kind != "refused":
        return {}
    if (counted := _COUNTED.search(failure.detail)) is not None:
        return _refused_by_accelerator(models, failure.detail, counted)
    if (missing := missing_operator(failure)) is not None:
        lacking = (any(lacks(missing, node) for node in model.graph.nodes) for model in models)
        return {at: failure for at, is_one in enumerate(lacking) if is_one}
    found = _REFUSED_NODE.search(failure.detail)
    at = None if found is None else _model_of(models, found)
    if found is None or at is None:
        return {}
    start, stop = found.span("number")
    before = sum(len(model.graph.nodes) for model in models[:at])
    number = int(found["number"]) - before
    detail = f"{failure.detail[:start]}{number}{failure.detail[stop:]}"
    return {at: RunFailure("refused", detail)}


def named_model(models: Sequence[PosedModel], failure: RunFailure) -> int | None:
    """Return the place of the model that a failure names, if it names one.

    It is a hint: a delegate's nodes have numbers too, and memory that was overwritten makes others
    fail.

    Args:
        models: the pack's, in their order.
        failure: what the runtime says of the pack.

    """
    if found := _first_match((_FAILED_NODE, _REFUSED_NODE), failure.detail):
        at = _model_of(models, found)
        if at is not None:
            return at
    if missing := missing_operator(failure):
        for at, model in enumerate(models):
            if any(lacks(missing, node) for node in model.graph.nodes):
                return at
    if found := _FAILED_RESULT.search(failure.detail):
        return _owner(_tensors(models), int(found.group(1)))
    return None


def suspects(models: Sequence[PosedModel], failure: RunFailure) -> list[tuple[int, ...]]:
    """Return the places of models among which an accelerator refuses some.

    Args:
        models: the pack's, in their order.
        failure: what the runtime says of the pack.

    Returns:
        For each operator that it says that it refuses, the models that have it: it refuses at least
        one of them. Nothing for a failure that names none.

    """
    named = _COUNTED.search(failure.detail)
    if failure.kind != "refused" or named is None:
        return []
    operators = {found["operator"] for found in _REASON.finditer(named["reasons"])}
    found = (_places(models, operator) for operator in sorted(operators))
    return [places for places in found if places]


def is_misshapen(detail: str) -> bool:
    """Return whether a runtime's error is that a result has another shape than was declared."""
    return _MISSHAPEN.search(detail) is not None


def missing_operator(failure: RunFailure) -> MissingOperator | None:
    """Return the operator and version that the runtime lacks, if that is why it failed."""
    found = _first_match(_MISSING, failure.detail)
    if found is None:
        return None
    version = found.groupdict().get("version")
    return found["operator"], None if version is None else int(version)


def lacks(missing: MissingOperator, node: GraphNode) -> bool:
    """Return whether a node is what a runtime lacks."""
    operator, version = missing
    return node.operator == operator and version in (None, node.version)


def _refused_by_accelerator(
    models: Sequence[PosedModel], detail: str, counted: re.Match[str]
) -> dict[int, RunFailure]:
    """Return the models of one operator that are meant by an accelerator's reasons.

    It names each operator with one reason, whatever others its other nodes have.
    """
    found = {}
    for named in _REASON.finditer(counted["reasons"]):
        for at, reason in _meant(models, named["operator"], named["reason"]):
            alone = f"takes 0 of 1 nodes, and not {named['operator']}: {reason}"
            told = f"{detail[: counted.start()]}{alone}{detail[counted.end() :]}"
            found[at] = RunFailure("refused", told)
    return found


def _meant(models: Sequence[PosedModel], operator: str, reason: str) -> Iterator[tuple[int, str]]:
    """Yield the places of models with an operator that a reason means, each with its own reason."""
    places = _places(models, operator)
    alone = [at for at in places if len(models[at].graph.nodes) == 1]
    tensor, later = _TENSOR.search(reason), _LATER.search(reason)
    if tensor is not None:
        owner = _owner(_tensors(models), int(tensor[1]))
        if owner in alone:
            number = int(tensor[1]) - sum(_tensors(models)[:owner])
            yield owner, f"{reason[: tensor.start(1)]}{number}{reason[tensor.end(1) :]}"
        return
    for at in alone:
        (node,) = models[at].graph.nodes
        is_later = later is not None and node.version > int(later[1])
        if is_later or _UNKNOWN.search(reason) or len(places) == 1:
            yield at, reason


def _places(models: Sequence[PosedModel], operator: str) -> tuple[int, ...]:
    return tuple(
        at
        for at, model in enumerate(models)
        if any(node.operator == operator for node in model.graph.nodes)
    )


def _model_of(models: Sequence[PosedModel], found: re.Match[str]) -> int | None:
    """Return the place of the model whose node is named, by number and operator."""
    number, nodes = int(found["number"]), [n for model in models for n in model.graph.nodes]
    if number >= len(nodes) or nodes[number].operator != found["operator"]:
        return None
    return _owner([len(model.graph.nodes) for model in models], number)


def _tensors(models: Sequence[PosedModel]) -> list[int]:
    return [len(model.graph.values) for model in models]


def _first_match(patterns: Sequence[re.Pattern[str]], text: str) -> re.Match[str] | None:
    return next((found for pattern in patterns if (found := pattern.search(text))), None)


def _owner(sizes: Sequence[int], number: int) -> int | None:
    """Return which of consecutive ranges a number lies in."""
    at = bisect_right(list(accumulate(sizes)), number)
    return at if at < len(sizes) else None
