"""What a device gave its model to run with, in words: nodes of a delegate, or an arena."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def taken_nodes(device: Mapping[str, Any]) -> str:
    """Return the words, with what the accelerator computes on; of TFLite Micro, its arena.

    Of a model that was compiled for the CPU no nodes are counted.

    Args:
        device: its provenance, as a run has it.

    """
    if device.get("arena_bytes") is not None:
        return f"an arena of {device['arena_bytes']:,} bytes"
    if device.get("kernels") == "compiled-cpu":
        return "compiled for the CPU"  # by XNNPACK, which is counted nowhere
    taken, nodes = device.get("delegated_nodes") or 0, device.get("total_nodes") or "?"
    if device.get("precision") is None:
        return f"{taken} of {nodes} nodes delegated"
    adapter = f" on {device['adapter']}" if device.get("adapter") else ""
    return f"{taken} of {nodes} nodes accelerated{adapter}, {device['precision']}"
