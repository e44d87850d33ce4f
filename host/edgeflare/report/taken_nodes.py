"""How many nodes of its model a device gave to a delegate or an accelerator, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def taken_nodes(device: Mapping[str, Any]) -> str:
    """Return the words, with what the accelerator computes on.

    Args:
        device: its provenance, as a run has it.

    """
    taken, nodes = device.get("delegated_nodes") or 0, device.get("total_nodes") or "?"
    if device.get("precision") is None:
        return f"{taken} of {nodes} nodes delegated"
    adapter = f" on {device['adapter']}" if device.get("adapter") else ""
    return f"{taken} of {nodes} nodes accelerated{adapter}, {device['precision']}"
