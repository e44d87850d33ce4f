"""Limits of what a repair may cost: by how much file and latency may grow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, isfinite

from edgeflare.errors import UserError

SIZE_UNITS: Mapping[str, float] = {"B": 1.0, "KiB": 1024.0, "MiB": 1024.0**2}
"""Units of `--max-size`, in bytes."""

LATENCY_UNITS: Mapping[str, float] = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
"""Units of `--max-latency`, in seconds."""

DEFAULT = "+5%"
"""Both limits where none is given: what the model was compressed for is not to be lost."""

NONE = "none"
"""In the place of a limit: the file or the time may grow by anything."""

_LIMIT = re.compile(r"\+?\s*(?P<amount>\d+(\.\d*)?|\.\d+)\s*(?P<unit>%|[a-zµ]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CostLimit:
    """How much a candidate may have more than the compressed model before.

    Attributes:
        share: of what that has, .01 for 1 %.
        amount: beside that, in bytes or seconds.

    """

    share: float = 0.0
    amount: float = 0.0

    def allows(self, before: float, after: float) -> bool:
        """Whether a candidate is within the limit.

        Args:
            before: bytes or seconds of the compressed model before.
            after: those of the candidate.

        """
        return after <= before * (1.0 + self.share) + self.amount


def size_limit(text: str) -> CostLimit | None:
    """Read `--max-size`: "+1%", "1%" or "+2KiB"; None where it is "none".

    Raises:
        UserError: it is no such limit.

    """
    return _limit(text, "--max-size", SIZE_UNITS, "+2KiB")


def latency_limit(text: str) -> CostLimit | None:
    """Read `--max-latency`: "+5%", "5%" or "+20us"; None where it is "none".

    Raises:
        UserError: it is no such limit.

    """
    return _limit(text, "--max-latency", LATENCY_UNITS, "+20us")


def least_limit(before: float, after: float) -> str:
    """Return the lowest limit, in tenths of a percent, that allows a candidate: "+3.2%".

    Args:
        before: bytes or seconds of the compressed model before, above 0.
        after: those of the candidate.

    """
    tenths = max(0, ceil(1000.0 * (after / before - 1.0)))
    if not CostLimit(tenths / 1000.0).allows(before, after):  # a quotient may be rounded down
        tenths += 1
    return f"+{tenths / 10:.10g}%"


def _limit(text: str, option: str, units: Mapping[str, float], example: str) -> CostLimit | None:
    if text.strip().lower() == NONE:
        return None
    found = _LIMIT.fullmatch(text.strip())
    factors = {unit.lower(): factor for unit, factor in {"%": 0.01, **units}.items()}
    factor = factors.get(found["unit"].lower()) if found else None
    if found is None or factor is None or not isfinite(amount := float(found["amount"]) * factor):
        raise UserError(
            f"{option} {text!r} is no limit: give by how much it may grow, as a percentage or in"
            f" {', '.join(units)}, such as +1% or {example}, or {NONE} for no limit"
        )
    return CostLimit(share=amount) if found["unit"] == "%" else CostLimit(amount=amount)
