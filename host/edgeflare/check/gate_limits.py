"""The limits of the gates: those by default, and what pairs, teams and users say instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError, suggestion
from edgeflare.models.pair_file import gates_of_file


@dataclass(frozen=True, slots=True)
class GateKind:
    """A kind of gate.

    Attributes:
        limit: the largest value that passes, where the user says nothing; None where nothing is
            held to it then.
        words: what is limited, for `--help` and docs.

    """

    limit: float | None
    words: str


LIMITS: Final[Mapping[str, GateKind]] = {
    "failures": GateKind(0, "inputs without an answer, or with one that is not finite"),
    "accuracy-drop": GateKind(0.01, "share of right decisions that is lost"),
    "net-harm": GateKind(0.01, "share of inputs harmed less those helped"),
    "kernel-changes": GateKind(0.005, "share decided otherwise than by the host, but for ties"),
    "class-loss": GateKind(0.05, "share of a class that is lost, where that is significant"),
    "faults": GateKind(0, "faults of the file that show in its decisions"),
    "field-loss": GateKind(
        0.05, "share of right decisions lost under a condition of the field, where significant"
    ),
    "changed": GateKind(None, "share decided otherwise than by the original, but for ties"),
}
"""The gates by name."""


def read_limits(
    given: Sequence[str], of_pair: Mapping[str, float] | None = None, team: Path | None = None
) -> dict[str, float]:
    """Return the limits by the names of their gates, the user's in place of the others.

    Args:
        given: such as "accuracy-drop<0.02", in place of all others; "NAME<inf" leaves a gate out.
        of_pair: limits of a `pair.toml`, by name; infinity leaves a gate out.
        team: a file with a table `[gates]`, in place of those of the pair; None without.

    Raises:
        UserError: one is no gate, or the file is not what it should be; says which there are.

    """
    limits = {name: kind.limit for name, kind in LIMITS.items()}
    files = [("[gates]", of_pair or {})]
    if team is not None:
        files.append((str(team), gates_of_file(team)))
    for source, found in files:
        for name, limit in found.items():
            limits[_known(name, source)] = _from_0(name, limit, source)
    for text in given:
        match = _GIVEN.fullmatch(text.strip())
        if match is None:
            raise UserError(f"--gate {text!r}: expected NAME<NUMBER, such as 'accuracy-drop<0.02'")
        name, number = match.groups()
        limits[name] = _number(name, number)
    return {name: limit for name, limit in limits.items() if limit is not None and isfinite(limit)}


_GIVEN: Final = re.compile(r"([a-z-]+)\s*<=?\s*(inf|[0-9.eE+-]+%?)")


def _number(name: str, number: str) -> float:
    try:
        limit = float(number.removesuffix("%")) / (100.0 if number.endswith("%") else 1.0)
    except ValueError:
        limit = -1.0
    return _from_0(_known(name, "--gate"), limit, "--gate", number)


def _known(name: str, source: str) -> str:
    if name not in LIMITS:
        raise UserError(
            f"{source}: there is no gate {name!r}{suggestion(name, LIMITS)}; gates are "
            + ", ".join(LIMITS)
        )
    return name


def _from_0(name: str, limit: float, source: str, written: str = "") -> float:
    if not limit >= 0:
        raise UserError(f"{source} {name}: {written or limit!r} is no number from 0 up")
    if isfinite(limit) and limit > 1 and name not in _COUNTS:
        raise UserError(
            f"{source} {name}: {written or limit!r} is more than all: give a share, such as 0.05"
        )
    return limit


_COUNTS: Final = frozenset({"failures", "faults"})
"""Gates whose limit is a number of things, and no share."""
