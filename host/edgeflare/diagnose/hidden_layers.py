"""Layers of which a device shows something else than what it computes from.

To observe a tensor it is made an output of the model, and an accelerator may then fill it with
anything, although the model's own output stays the same to the bit. A layer that differs in the
network, that is right alone, and none of whose inputs differ, is believed only where the layers
behind it were computed from what is shown of it. One that differs while no layer that reads it
does, though what is shown would have made them differ, is not believed either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from edgeflare.diagnose.layer_difference import Difference, layer_name
from edgeflare.models.tflite_graph import Graph, GraphOp

Differences = Mapping[int, Difference]
"""Differences of device and twin behind a layer, by the position of its operator."""

_NEAR = 0.1
"""Share of a difference that is left where another one accounts for it."""


def hidden_layers(
    graph: Graph, totals: Differences, own: Differences, follows: Callable[[], Collection[int]]
) -> tuple[int, ...]:
    """Return the layers whose outputs are not what the device shows in their place.

    Args:
        graph: graph of the model.
        totals: what all layers up to here have caused, of the layers that were observed.
        own: what each layer causes alone, of those that were run alone.
        follows: returns the layers whose outputs follow from what the device shows of their
            inputs; asked where that decides.

    Returns:
        Positions of their operators, in execution order.

    """
    found: list[int] = []
    known: Collection[int] | None = None
    denied = set[int]()
    if ignored := _ignored(graph, totals):
        known = follows()
        denied = {index for index, readers in ignored.items() if not readers & set(known)}
    parted, unsure = set[int](), set[int]()
    for layer in graph.layers:
        total, fed = totals.get(layer.index), graph.fed(layer)
        if total is None:
            unsure.update(layer.outputs)
        elif total.parted:
            alone, certain = own.get(layer.index), unsure.isdisjoint(fed)
            believed = layer.index not in denied and (
                not parted.isdisjoint(fed)
                or (alone is not None and alone.parted)
                or (certain and (alone is None or set(layer.outputs) <= set(graph.outputs)))
            )
            if not believed and layer.index not in denied:
                known = follows() if known is None else known
                readers = _readers(graph, layer)
                believed = bool(readers) and set(readers) <= set(known) - denied
            if not believed:
                found.append(layer.index)
            (parted if believed else unsure).update(layer.outputs)
    return tuple(found)


def follows_from(shown: Difference, computed: Difference) -> bool:
    """Whether a device's tensor is what its operator makes of the inputs that the device shows.

    Args:
        shown: the difference of the device's tensor from the twin's.
        computed: difference of the device's tensor from what the twin makes of the device's inputs.

    """
    return not computed.parted or computed.rmse <= _NEAR * shown.rmse


def where_hidden(graph: Graph, hidden: Collection[int], onset: int | None) -> str:
    """Return what hidden layers mean, as a sentence without its full stop; empty for none."""
    if not hidden:
        return ""
    reaching = set(graph.outputs)
    between = []
    for operator in reversed([graph.operators[index] for index in hidden]):
        if not reaching.isdisjoint(operator.outputs):
            between.append(layer_name(graph, operator))
            reaching.update(graph.fed(operator))
    if onset is None and len(between) > 1:
        return (
            f"device and twin begin to differ between {between[-1]} and {between[0]}: each layer "
            "is right alone, and what the device shows of them is not what it computes"
        )
    names = ", ".join(str(layer_name(graph, graph.operators[index])) for index in hidden)
    return f"the device does not show what it computes of {names}"


def where_unseen(graph: Graph, layers: Iterable[GraphOp]) -> str:
    """Return which layers cannot be seen and why, as a sentence without its full stop.

    It is empty where there are no such layers.
    """
    unseen: dict[str, list[str]] = {}
    for layer in layers:
        why = graph.unreadable(layer) or "the runtime does not show what they put out"
        unseen.setdefault(why, []).append(str(layer_name(graph, layer)))
    said = [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not seen: {why}"
        for why, names in unseen.items()
    ]
    return "; ".join([*said, "the other layers are compared"]) if said else ""


def _ignored(graph: Graph, totals: Differences) -> dict[int, set[int]]:
    """Return the layers that differ though none of their readers does, each with its readers."""
    found = {}
    for layer in graph.layers:
        if layer.index in totals and totals[layer.index].parted:
            readers = _readers(graph, layer)
            seen = [totals.get(reader) for reader in readers]
            if seen and not any(total is None or total.parted for total in seen):
                found[layer.index] = readers
    return found


def _readers(graph: Graph, operator: GraphOp) -> set[int]:
    return {reader.index for reader in graph.layers if set(operator.outputs) & set(reader.inputs)}
