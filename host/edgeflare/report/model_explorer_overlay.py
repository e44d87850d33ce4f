"""What was found out about a finding as node data of Google's Model Explorer, to lay over a graph.

A file of node data holds one set of values, by the graph's id and the node's, each with its colour;
so a finding has several. The format is that of `node_data_builder.py` in `ai-edge-model-explorer`,
and the ids are those of its adapter that reads `.tflite` files themselves. The files lie in the run
directory, a folder for each finding.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec
from rich.console import Console

from edgeflare.diagnose.explain_document import ExplainedFinding
from edgeflare.diagnose.layer_difference import Difference, LayerName
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import fold_shapes
from edgeflare.models.tflite_graph import Graph
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import remove_documents
from edgeflare.record.json_file import json_bytes
from edgeflare.report.html.explanation_view import largest, verdict_words
from edgeflare.run.run_directory import RunDirectory

TOTAL, OWN, NEW_SHARE, RESIDUAL, MARGIN_SHARE, VERDICT = OVERLAY_FILES = (
    "1-total.json", "2-own.json", "3-new-share.json", "4-residual.json", "5-margin-share.json",
    "6-verdict.json",
)  # fmt: skip
"""The names of all files that an overlay may have. They are loaded in this order, which is that of
the columns, and the graph has the colours of the last one at first."""

_KERNEL, _COMPRESSION = "#b4531a", "#2563a8"
"""Colours of the pictures, for device and twin, and for twin and original."""

_DIFFERS, _ONSET, _BEYOND = 0.15, 0.4, 0.3
"""How strong the colours are of layers that the verdict does not point at. Different words have
different ones: for a group of nodes Model Explorer counts the colours, and says their words."""

_DIGITS = 4
"""Significant digits of a figure, since Model Explorer shows all that it is given."""

ALayer = TypeVar("ALayer", bound=LayerName)

_FOLDER = "explain/{:06d}.model-explorer"


class Node(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What is shown of a node.

    Attributes:
        value: a figure, or words.
        bg_color: background colour; absent where it has none.

    """

    value: float | str
    bg_color: str | None = None


Nodes = dict[str, Node]
"""What is shown of each node, by the node's key."""


def model_explorer_overlay(
    finding: ExplainedFinding, graph: Graph, executed: Graph | None = None
) -> dict[str, bytes]:
    """Return the node data of a finding, by file name; none where no layer was observed.

    Figures are those of `explain.json` to four digits, and what is not known has no value. The
    largest value of a file has its full colour, and zero has none.

    Args:
        finding: an entry of `explain.json`.
        graph: graph of the compressed model, as the user's file has it.
        executed: the one whose operators the entry numbers, if that is another: where shapes are
            folded, with the same tensors and fewer operators.

    """
    finding = finding if executed is None else _renumbered(finding, graph, executed)
    parting, loss = finding.device_and_twin.layers, finding.twin_and_original.layers
    totals = {layer.operator_index: layer.total for layer in parting}
    own = {layer.operator_index: layer.own for layer in parting}
    in_units = any(
        total is not None and total.max_error_steps is not None for total in totals.values()
    )
    unit = "quantization units" if in_units else "real values"
    keys = _node_keys(graph)

    def differences(known: Mapping[int, Difference | None]) -> Nodes:
        figures = {at: largest(found, in_units=in_units) for at, found in known.items()}
        return _figures(figures, _KERNEL, keys)

    sets = {
        TOTAL: (f"total: device – twin, {unit}", differences(totals)),
        OWN: (f"own: device – twin, by this operator alone, {unit}", differences(own)),
        NEW_SHARE: (
            "new share of device – twin",
            _figures({layer.operator_index: layer.new_share for layer in parting}, _KERNEL, keys),
        ),
        RESIDUAL: (
            "residual: twin – original, new here, units of the layer",
            _figures({layer.operator_index: layer.residual for layer in loss}, _COMPRESSION, keys),
        ),
        MARGIN_SHARE: (
            "margin share: of what compression changed",
            _figures(
                {layer.operator_index: layer.margin_share for layer in loss}, _COMPRESSION, keys
            ),
        ),
        VERDICT: (f"{verdict_words(finding.verdict)} on {finding.device}", _marks(finding, keys)),
    }
    # The id of the main graph is its name, else its signature's, else "main".
    signatures = (known for known in graph.model.signatureDefs or () if known.subgraphIndex == 0)
    signature = next(signatures, None)
    names = (graph.model.subgraphs[0].name, signature and signature.signatureKey, b"main")
    graph_id = str(next(name for name in names if name).decode(errors="replace"))
    return {
        file: _file(graph_id, f"{name} (seed {finding.seed_id})", nodes)
        for file, (name, nodes) in sets.items()
        if nodes
    }


def _renumbered(finding: ExplainedFinding, graph: Graph, executed: Graph) -> ExplainedFinding:
    """Return an entry with the operators' numbers in the user's file."""

    def in_file(layer: ALayer) -> ALayer:
        if layer.operator_index < 0:
            return layer
        tensor = executed.operators[layer.operator_index].outputs[0]
        return replace(layer, operator_index=graph.made_by[tensor])

    parting, loss = finding.device_and_twin, finding.twin_and_original
    return msgspec.structs.replace(
        finding,
        device_and_twin=replace(
            parting,
            layers=tuple(map(in_file, parting.layers)),
            onset=None if parting.onset is None else in_file(parting.onset),
        ),
        twin_and_original=msgspec.structs.replace(
            loss,
            layers=tuple(map(in_file, loss.layers)),
            most=None if loss.most is None else in_file(loss.most),
            coarse=tuple(map(in_file, loss.coarse)),
        ),
    )


def _file(graph_id: str, name: str, nodes: Nodes) -> bytes:
    """Return a file of one set. Sums and means of its figures say nothing, so none are shown."""
    shown = {
        "hideInAggregatedStatsTable": True,
        "hideInChildrenStatsTable": True,
        "showExpandedSummaryOnGroupNode": True,  # of words: how many nodes of a group have each
    }
    one_set = {"name": name, **shown, "results": msgspec.to_builtins(nodes)}
    return json_bytes({graph_id: one_set})


# Values and colours.


def _figures(figures: Mapping[int, float | None], colour: str, keys: _NodeKeys) -> Nodes:
    """Return the figures that are known, by operator."""
    known = {
        key: float(f"{value:.{_DIGITS}g}")
        for operator, value in figures.items()
        if value is not None and (key := keys(operator)) is not None
    }
    most = max(map(abs, known.values()), default=0.0)
    return {key: _node(value, colour, abs(value) / (most or 1.0)) for key, value in known.items()}


def _marks(finding: ExplainedFinding, keys: _NodeKeys) -> Nodes:
    """Return what is to be said of each layer in words, and where the verdict points at."""
    differences = {
        layer.operator_index: layer.total.parted
        for layer in finding.device_and_twin.layers
        if layer.total is not None
    }
    errors = {layer.operator_index: layer.beyond for layer in finding.twin_and_original.layers}
    nodes: Nodes = {}
    for operator in sorted(differences.keys() | errors.keys()):
        words, colour, strength = _mark(
            finding, operator, differences.get(operator), beyond=errors.get(operator, False)
        )
        key = keys(operator)
        if words and key is not None:
            nodes[key] = _node("; ".join(words), colour, strength)
    return nodes


def _mark(
    finding: ExplainedFinding, operator: int, parted: bool | None, *, beyond: bool
) -> tuple[list[str], str, float]:
    """Return the words of a layer, its colour, and how strong that is, from 0 to 1."""
    onset, begins = finding.device_and_twin.onset, finding.begins_in
    words, colour, strength = [], _KERNEL, 0.0
    if parted is not None:
        words.append("differs" if parted else "equal")
        strength = _DIFFERS if parted else 0.0
    if onset is not None and operator == onset.operator_index:
        words = ["onset" if finding.device_and_twin.first else "onset, or earlier"]
        strength = _ONSET
    if beyond:
        words.append("beyond quantization")
        colour, strength = _COMPRESSION, _BEYOND + strength / 2
    if begins is not None and operator == begins.operator_index:
        words.insert(0, verdict_words(finding.verdict))
        colour = _COMPRESSION if finding.verdict.name == "compression" else _KERNEL
        strength = 1.0
    return words, colour, strength


def _node(value: float | str, colour: str, strength: float) -> Node:
    """Return a node's value, on white that is mixed with a colour; `strength` is 0 to 1.

    A zero has no colour. Words have white, since Model Explorer does not count them without one.
    """
    if not strength and not isinstance(value, str):
        return Node(value)
    channels = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    mixed = "".join(f"{round(255 + (channel - 255) * strength):02x}" for channel in channels)
    return Node(value, f"#{mixed}")


# The names that Model Explorer has for what is in the file.


_NodeKeys = Callable[[int], str | None]
"""Returns what names an operator's node; None where nothing names it alone."""


def _node_keys(graph: Graph) -> _NodeKeys:
    """Return what names an operator's node: its position, or where that does not, another name.

    A key that is the name of some tensor is taken for that tensor's node. Converters do name
    tensors by numbers, and there the operator is named by a tensor that it writes.
    """
    tensors = Counter(tensor.name for tensor in graph.tensors)

    def key(operator: int) -> str | None:
        if str(operator) not in tensors:
            return str(operator)
        written = (graph.tensors[tensor].name for tensor in graph.operators[operator].outputs)
        return next((name for name in written if tensors[name] == 1), None)

    return key


class OverlayFiles:
    """The overlays that one call writes."""

    def __init__(
        self, directory: RunDirectory, pair: Pair, seed_ids: Iterable[int], *, wanted: bool
    ) -> None:
        """Begin, before anything is asked.

        Args:
            directory: the run directory.
            pair: pair whose compressed model is the graph.
            seed_ids: those of the findings that are to be explained.
            wanted: whether each of them is to have an overlay. Else only those have that had one
                before, so that no overlay shows what an earlier explanation found.

        Raises:
            UserError: the place of an overlay is taken, or leads out of the run directory.

        """
        self._directory = directory
        self._pair = pair
        self._wanted = wanted
        self._written: list[int] = []
        self._without: dict[int, str] = {}
        for seed_id in seed_ids:
            self._files(seed_id)

    def write(self, finding: ExplainedFinding) -> None:
        """Write the overlay of a finding, in the place of an earlier one."""
        seed_id = finding.seed_id
        if not (self._wanted or self._folder(seed_id).exists()):
            return
        contents = model_explorer_overlay(finding, *self._graphs)
        for name, path in self._files(seed_id).items():
            if name in contents:
                write_atomically(path, contents[name])
            else:
                remove_documents(self._directory.path, f"{_FOLDER.format(seed_id)}/{name}")
        if contents:
            self._written.append(seed_id)
        else:
            self._without[seed_id] = (
                finding.device_and_twin.note or "none of its layers was observed"
            )

    def show(self, console: Console) -> None:
        """Say which findings have no overlay, and what to type to look at the first that has."""
        for why in dict.fromkeys(self._without.values()):
            seeds = [seed_id for seed_id, note in self._without.items() if note == why]
            said = f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"
            _print(console, f"Model Explorer has nothing to show of {said}: {why}.")
        if not self._written:
            return
        first = min(self._written)
        folder = self._folder(first)
        _print(
            console,
            f"`model-explorer {shlex.quote(str(self._pair.compressed))} --node_data_paths="
            f'"$(ls -m {shlex.quote(str(folder))}/*)"` shows seed {first} on the graph.',
        )
        if others := len(self._written) - 1:
            _print(
                console,
                f"{others} more {'has its' if others == 1 else 'have their'} files in"
                f" {self._directory.path / 'explain'}.",
            )

    def _folder(self, seed_id: int) -> Path:
        return self._directory.path / _FOLDER.format(seed_id)

    def _files(self, seed_id: int) -> dict[str, Path]:
        """Return the paths of all files that the overlay of a finding may have, by their names."""
        folder = self._folder(seed_id)
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file, where an overlay would be: move it away")
        names = ((name, f"{_FOLDER.format(seed_id)}/{name}") for name in OVERLAY_FILES)
        return {name: self._directory.inside(within) for name, within in names}

    @cached_property
    def _graphs(self) -> tuple[Graph, Graph | None]:
        """The graph of the user's file, and the one with folded shapes where that was run."""
        pair = self._pair
        source, content = str(pair.compressed), read_model_file(pair.compressed)
        if not pair.fold_shapes:
            return Graph(content, source), None
        folded = fold_shapes(content, source, pair.interface.invocation).content
        return Graph(content, source), Graph(folded, source)


def _print(console: Console, line: str) -> None:
    console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
