"""What a survey says in words of one of its gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def gate_name(gate: Mapping[str, Any]) -> str:
    """Return what a gate is, and what it is not about: `rate<0.01 under noise (of noise only …)`.

    Args:
        gate: as a survey's document has it.

    """
    if not gate.get("left_out"):
        return str(gate["gate"])
    return f"{gate['gate']} (of {gate['condition']} only {', '.join(gate['conditions'])})"


def gate_sentence(gate: Mapping[str, Any]) -> str:
    """Return what became of a gate: `rate<0.01 is held: …`.

    Args:
        gate: as a survey's document has it.

    """
    return f"{gate_name(gate)} is {gate['state']}: {gate['words']}"
