"""In what two runs differ whose answers are to be one run's, and who is refused for that."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from edgeflare.devices.provenance import (
    DEVICE_DECIDES,
    HOST_DECIDES,
    OPENED_MODEL_DECIDES,
    decisive_changes,
)
from edgeflare.errors import UserError
from edgeflare.models.run_pair import FoldedShapes
from edgeflare.record import request
from edgeflare.run.run_header import RunHeader


@dataclass(frozen=True, slots=True)
class RunDifference:
    """What two runs differ in.

    Attributes:
        of: part of the runs that differs.
        name: name of the option, or of what is known of the device or the host.
        one: value in the one run; None for an option that was not given.
        other: value in the other.

    """

    of: Literal["command", "pair", "folding", "option", "device", "host"]
    name: str
    one: str | None
    other: str | None

    def in_words(self) -> tuple[str, str]:
        """Return both values as a message says them."""
        return self.one or "none", self.other or "none"


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
        yield RunDifference("option", name, was or None, now or None)
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


def require_same(
    begun: RunHeader,
    now: RunHeader,
    run: str,
    *,
    allow_other_host: bool = False,
) -> None:
    """Refuse to go on with a run that is about something else, or on another host.

    Args:
        begun: what run it is.
        now: what goes on with it.
        run: name of the run in messages.
        allow_other_host: whether the host may differ in what decides its answers.

    Raises:
        OtherHostError: the host differs.
        UserError: the pair, its folding, the plan or the kernels differ; names the first
            difference.

    """
    # Devices that are alike in what decides answers have a name each.
    ignored = {"--device"} if len(begun.devices) == len(now.devices) else set()
    for found in differences(begun, now, ignored):
        if found.of != "host":
            raise UserError(_refusal(found, begun, run))
        if not allow_other_host:
            raise OtherHostError(
                f"{run} was begun on another host, with {found.name} {found.one} there and"
                f" {found.other} here, which may change the answers of original and twin:"
                " start a new run"
            )


class OtherHostError(UserError):
    """A run is to be gone on with on a host that may answer differently from its first."""


def _refusal(found: RunDifference, begun: RunHeader, run: str) -> str:
    """Return why a run cannot be gone on with, and what can be done."""
    if found.of == "command":
        return (
            f"{run} holds a {found.one}, and no {found.other}: `edgeflare {found.one}` goes on with"
            " it; or name another folder with --out, and leave out --resume"
        )
    if found.of == "pair":
        return (
            f"{run} belongs to another pair ({begun.pair.name}, or other files or "
            "preprocessing): resume it with that pair, or name another folder with --out"
        )
    if found.of == "device" and found.name == "cpu_features":  # each side is what the other lacks
        return (
            f"{run} was begun on a device with other cpu_features, {found.one} there and"
            f" {found.other} on the one of now: start a new run"
        )
    if found.of == "device":
        return (
            f"{run} was begun on a device with {found.name} {found.one}, but the one of now has"
            f" {found.other}: start a new run"
        )
    if found.of == "folding" and found.name != "--fold-shapes":
        return (
            f"{run} was begun by an edgeflare that folds the model's shapes otherwise: start a"
            " new run"
        )
    if found.of == "folding":
        said = f"{found.one} {found.name}, not {found.other}"
    else:
        said = request.not_as_begun(found.name, found.one, found.other)
    return f"{run} was begun {said}: repeat the command that began it, with --resume"
