"""In what two runs differ whose answers are to be one run's."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from edgeflare.devices.decisive_provenance import (
    DEVICE_DECIDES,
    HOST_DECIDES,
    OPENED_MODEL_DECIDES,
    decisive_changes,
)
from edgeflare.models.run_pair import FoldedShapes
from edgeflare.record import request
from edgeflare.run.run_header import RunHeader


@dataclass(frozen=True, slots=True)
class RunDifference:
    """What two runs differ in.

    Attributes:
        of: which part of them it is.
        name: of the option, or of what is known of the device or the host.
        one: its value in the one run.
        other: in the other.

    """

    of: Literal["command", "pair", "folding", "option", "device", "host"]
    name: str
    one: str
    other: str


def differences(
    one: RunHeader, other: RunHeader, ignored: Collection[str] = ()
) -> Iterator[RunDifference]:
    """Yield what two runs differ in that decides their answers, what tells most of them first.

    Args:
        one: what the one run is.
        other: the other.
        ignored: names of options that may differ.

    """
    commands = made_by(one.plan.strategy), made_by(other.plan.strategy)
    if commands[0] != commands[1]:
        yield RunDifference("command", "command", *commands)
    if one.pair.fingerprint != other.pair.fingerprint:
        yield RunDifference("pair", "pair", one.pair.name, other.pair.name)
    yield from _of_folding(one.pair.folded_shapes, other.pair.folded_shapes)
    for name, was, now in request.differences(one.plan, other.plan, ignored):
        yield RunDifference("option", name, was or "none", now or "none")
    for mine, its in zip(one.devices, other.devices, strict=False):
        known = (mine.provenance, its.provenance)
        for change in decisive_changes(*known, (*DEVICE_DECIDES, *OPENED_MODEL_DECIDES)):
            yield RunDifference("device", change.name, change.one, change.other)
    for change in decisive_changes(one.host, other.host, HOST_DECIDES):
        yield RunDifference("host", change.name, change.one, change.other)


def made_by(strategy: str) -> str:
    """Return the command that makes runs whose plan names a strategy."""
    return strategy if strategy in ("survey", "replay") else "search"


def _of_folding(one: FoldedShapes | None, other: FoldedShapes | None) -> Iterator[RunDifference]:
    if (one is None) != (other is None):
        said = ("with", "without") if one else ("without", "with")
        yield RunDifference("folding", "--fold-shapes", *said)
    elif one and other and one.sha256 != other.sha256:
        yield RunDifference("folding", "folded model", one.sha256, other.sha256)
