"""A layer table as a document: `layers.json`, schema `edgeflare.layers/v1`."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot
from pathlib import Path
from typing import Annotated, Final

import msgspec

from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.diagnose.layers.layer_figures import LayerFigures, RangeUse
from edgeflare.record.document_reader import DocumentReader
from edgeflare.record.folder import FolderKind
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Count, CountFromOne, plain_json
from edgeflare.run.run_document import RunDevice

LAYERS: Final = "layers.json"
"""Name of the document in the folder."""

LAYER_TABLE: Final = FolderKind("layer table", files=(LAYERS,), resumable=False)


class LayersDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.layers/v1"
):
    """How far each layer of a compressed model is off, over many inputs.

    Attributes:
        edgeflare: version that wrote this.
        pair: name of the pair.
        fingerprint: the digest of its files and settings.
        source: the last part of the path that the inputs are from.
        kernels: kernel set of the twin.
        device: the device that was held against the twin, and what is known of it; null without
            one.
        outputs_differ: on how many inputs device and twin give other outputs; null without a
            device.
        together: two layers, one fed by the other, that the device computes rightly by themselves
            and wrongly together; empty where none are known.
        inputs: how many inputs were looked into.
        inputs_requested: how many inputs were to be looked into; more than `inputs` where it was
            stopped.
        input_range: how the range of the compressed model's input goes with what the original is
            given; null where it has none, or there is no original.
        layers: those of the compressed model, in execution order.
        notes: what could not be seen, each a sentence without its full stop.

    """

    edgeflare: str
    pair: str
    fingerprint: str
    source: str
    kernels: str
    device: RunDevice | None
    outputs_differ: Count | None
    together: tuple[LayerName, ...]
    inputs: Count
    inputs_requested: CountFromOne
    input_range: RangeUse | None
    layers: Annotated[tuple[LayerFigures, ...], msgspec.Meta(min_length=1)]
    notes: tuple[str, ...]

    def other_constants(self) -> list[LayerFigures]:
        """Return the layers whose constants are off by more than rounding explains."""
        return [
            layer for layer in self.layers if layer.constants is not None and layer.constants.beyond
        ]

    def faulty(self) -> list[LayerFigures]:
        """Return the layers whose constants are wrong.

        Where most layers have other constants, the model was pruned or trained anew, and only those
        are wrong that their type cannot hold. Elsewhere those that were pruned are not.
        """
        others = self.other_constants()
        compared = sum(layer.constants is not None for layer in self.layers)
        if 2 * len(others) <= compared:
            return [
                other
                for other in others
                if other.constants is not None and not other.constants.pruned
            ]
        return [
            other for other in others if other.constants is not None and other.constants.overflows
        ]

    def most_sensitive(self) -> list[LayerFigures]:
        """Return the layer to begin with, and those that the inputs do not tell from it.

        None where no sensitivity was measured, or no layer is off.
        """
        ranked = [
            (layer, layer.sensitivity)
            for layer in self.by_sensitivity()
            if layer.sensitivity is not None and layer.sensitivity.margin
        ]
        if not ranked:
            return []
        first = ranked[0][1]
        return [
            layer
            for layer, its in ranked
            if first.margin - its.margin <= hypot(first.half_width, its.half_width)
        ]

    def by_sensitivity(self) -> list[LayerFigures]:
        """Return the layers that could be held against the original's, the most sensitive first.

        The margin decides where it was measured; elsewhere the quotient of the errors does.
        """
        known = [layer for layer in self.layers if layer.matched_by is not None]
        return sorted(known, key=_harm, reverse=True)

    @property
    def measured(self) -> int:
        """Inputs that the sensitivity was measured on."""
        found = (layer.sensitivity.inputs for layer in self.layers if layer.sensitivity is not None)
        return max(found, default=0)

    def not_finite(self) -> list[LayerFigures]:
        """Return the layers that are not finite where the original is, in execution order."""
        return [
            layer
            for layer in self.layers
            if layer.entire is not None and layer.entire.not_finite_here
        ]

    def wrong_on_device(self) -> list[LayerFigures]:
        """Return the layers that the device computes otherwise by themselves, the worst first."""
        found = [layer for layer in self.layers if differs_on_device(layer)]
        return sorted(found, key=_by_how_much, reverse=True)


BEYOND: Final = 0.01
"""Share of the original's values beyond a range from which on that is said."""


def cuts_off(found: RangeUse | None) -> bool:
    """Whether a range ends before a share of the original's values that is worth a word."""
    return found is not None and found.below + found.above >= BEYOND


STEPS_OF_ROUNDING: Final = 1.5
"""Kernels of two kinds may round a sum the other way: one step of a quantized output."""

DB_OF_SUMMING: Final = 60.0
"""SQNR in decibels that a sum of floats exceeds in another order, or in half precision."""


LEAST_OF_FLOATS: Final = 1e-6
"""An error of floats that is no larger is one of zeros."""


def differs_on_device(layer: LayerFigures) -> bool:
    """Whether a layer is computed otherwise on the device by more than rounding explains."""
    found = layer.device_single
    if found is None or not found.off:
        return False
    if found.not_finite:
        return True
    if found.max_error_steps is not None:
        return found.max_error_steps > STEPS_OF_ROUNDING
    noisy = found.snr_db is not None and found.snr_db < DB_OF_SUMMING
    return noisy and found.max_error > LEAST_OF_FLOATS


def _harm(layer: LayerFigures) -> tuple[bool, float, float]:
    not_finite = layer.entire is not None and layer.entire.not_finite > 0
    margin = -1.0 if layer.sensitivity is None else layer.sensitivity.margin
    return not_finite, margin, own_share(layer) or 0.0


def own_share(layer: LayerFigures) -> float | None:
    """Return the layer's own RMSE over that of all layers up to it; None where one is unknown."""
    if layer.single is None or layer.entire is None or not layer.entire.rmse:
        return None
    return layer.single.rmse / layer.entire.rmse


def _by_how_much(layer: LayerFigures) -> tuple[int, float]:
    found = layer.device_single
    assert found is not None  # noqa: S101 - of one that differs
    return (
        found.not_finite,
        found.max_error if found.max_error_steps is None else found.max_error_steps,
    )


def layers_bytes(document: LayersDocument) -> bytes:
    """Return a document as it is written."""
    return json_bytes(plain_json(document))


def load_layers(path: Path) -> LayersDocument:
    """Return a document that was written."""
    return _READER.read(path)


def _contradictions(document: LayersDocument) -> Iterator[str]:
    if (document.outputs_differ or 0) > document.inputs:
        yield "outputs_differ counts more inputs than there are"
    if document.inputs > document.inputs_requested:
        yield f"inputs is {document.inputs}, and only {document.inputs_requested} were asked for"
    places = [layer.layer.operator_index for layer in document.layers]
    if places != sorted(set(places)):
        yield "layers are not in execution order"
    for at, layer in enumerate(document.layers):
        measured = layer.sensitivity
        if measured is not None and measured.changed > measured.inputs:
            yield f"layers[{at}].sensitivity has more changed decisions than inputs"
        if layer.range is not None and layer.range.low >= layer.range.high:
            yield f"layers[{at}].range ends before it begins"


_READER = DocumentReader(LayersDocument, _contradictions)
