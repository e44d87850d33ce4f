"""What the files of a pair and their layers show in a check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from edgeflare.record.json_types import Amount, Count, CountFromOne


class FileFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the files say without being run.

    Attributes:
        original_bytes: size of the original's file; null where it is none.
        compressed_bytes: size of the compressed model's.
        faults: what is wrong in the compressed one.
        notes: what is odd in the original, or alike in both, a sentence each.

    """

    original_bytes: Count | None
    compressed_bytes: Count
    faults: tuple[FileFault, ...]
    notes: tuple[str, ...]


FaultKind = Literal[
    "unread-input",
    "state-scale",
    "raw-state",
    "copied-scale",
    "flushed-constant",
    "options",
    "not-finite",
    "overflow",
    "constants",
    "input-range",
    "cut-off",
    "coarse",
]
"""What may be wrong with a compressed file."""


class FileFault(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong with a compressed file.

    Attributes:
        kind: what.
        place: where, such as a layer.
        sentence: what is wrong, a sentence without its full stop.
        next_step: what to do about it, likewise.

    """

    kind: FaultKind
    place: str
    sentence: str
    next_step: str


class SeenLayers(msgspec.Struct, frozen=True, kw_only=True):
    """What the layers show.

    Attributes:
        inputs: how many were looked into.
        layers: how many layers the compressed model has.
        matched: those of them that could be held against one of the original's.
        faults: what is wrong with layers of the file.
        other_constants: how many layers have other constants than the original's, where most have,
            as after pruning or training.
        sensitive: what the most sensitive layer does, a sentence; empty where none was measured.
        worst: the three that decisions hang on most by themselves; none where that was not
            measured.
        explained: changed inputs by the layers that compression's part is due to, the most frequent
            first.
        on_device: layers that a device computes otherwise than the twin, each in words, by the
            device's name; devices that compute all alike have none.
        together: operators that a device computes rightly by themselves and wrongly one after the
            other, by the device's name; none where that is not known, or not so.
        notes: what could not be seen, a sentence each.

    """

    inputs: Count
    layers: Count
    matched: Count
    faults: tuple[FileFault, ...]
    other_constants: Count
    sensitive: str
    worst: tuple[SensitiveLayer, ...] = ()
    explained: tuple[ExplainedChanges, ...] = ()
    on_device: Mapping[str, tuple[str, ...]]
    together: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


class SensitiveLayer(msgspec.Struct, frozen=True, kw_only=True):
    """What a layer does to decisions where it alone is quantized.

    Attributes:
        layer: name of the layer.
        inputs: on how many inputs that was measured.
        changed: how many of their decisions change.
        margin: mean change of a decision's margin.

    """

    layer: str
    inputs: CountFromOne
    changed: Count
    margin: Amount


class ExplainedChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Changed inputs that the same thing is to blame for.

    Attributes:
        description: what that is, such as a layer that is quantized coarsely.
        inputs: how many.

    """

    description: str
    inputs: CountFromOne
