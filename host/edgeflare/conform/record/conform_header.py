"""What conformance run this is: the part of its journal that is known before the first round."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.record.conform_request import ConformRequest
from edgeflare.devices.decisive_provenance import (
    DEVICE_DECIDES,
    HOST_DECIDES,
    DecisiveChange,
    decisive_changes,
)
from edgeflare.errors import UserError


@dataclass(frozen=True, slots=True)
class ConformHeader:
    """What conformance run it is.

    Attributes:
        version: of edgeflare, which began it.
        request: what was asked.
        device: provenance of the device, as plain JSON values.
        host: what is known of the host, which has the other kernel sets, as plain JSON values.
        specification: digest of all operators' declarations; other ones draw other models.

    """

    version: str
    request: ConformRequest
    device: Mapping[str, Any]
    host: Mapping[str, Any]
    specification: str

    @property
    def host_runtime(self) -> str:
        """The runtime of the host's kernel sets, such as "ai-edge-litert 2.3.0"."""
        return f"{self.host['runtime']} {self.host['runtime_version']}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "version": self.version,
            "request": self.request.to_json(),
            "device": dict(self.device),
            "host": dict(self.host),
            "specification": self.specification,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ConformHeader:
        """Return the header that `to_json` wrote.

        Raises:
            ValueError: a value is of another type, or missing; names it.

        """
        return msgspec.convert(values, cls)

    def require_same(self, other: ConformHeader, path: str) -> None:
        """Refuse to go on with this run as another.

        Raises:
            UserError: they differ in more than how long it may take and the device's name, or it
                may take less.

        """
        for change in decisive_changes(self.device, other.device, DEVICE_DECIDES):
            raise _elsewhere(path, "a device", change)
        was_asked, now_asked = self.request.to_json(), other.request.to_json()
        for key, was in was_asked.items():
            if key != "seconds" and was != now_asked[key]:
                shown = _asked(key, was), _asked(key, now_asked[key])
                raise _another(path, *(shown if shown[0] != shown[1] else ("others", "these")))
        self._require_as_long(other, path)
        for change in decisive_changes(self.host, other.host, HOST_DECIDES):
            raise _elsewhere(path, "a host", change)
        if self.specification != other.specification:
            raise _another(
                path, "other declarations of the operators", f"those of edgeflare {other.version}"
            )

    def _require_as_long(self, other: ConformHeader, path: str) -> None:
        """Refuse less time: what was found and shrunk already would be replaced by less of it."""
        was, now = self.request.seconds, other.request.seconds
        if now is None or (was is not None and was <= now):
            return
        if was is None:
            had, again = "has no time limit", "leave out --time-limit"
        else:
            # Not in powers of ten, which --time-limit does not read.
            had, again = f"may take {was:.12g} seconds", f"type --time-limit {was:.12g}s or longer"
        raise UserError(
            f"{path} {had}, and this would end it after {now:.12g}: {again}, or begin another run"
            " with another --out"
        )


_FEW: Final = 6
"""Operators that are named."""

_OPTIONS: Final = {"drawing": "--draw", "models": "--models", "rng_seed": "--rng-seed"}


def _asked(key: str, value: Any) -> str:
    """Return what was asked for, as a user types it."""
    if key == "cells":
        named = {type_: None for _, type_ in value}
        operators = list(dict.fromkeys(operator for operator, _ in value))
        few = len(operators) <= _FEW
        told = ", ".join(operators) if few else f"{len(operators)} operators"
        return f"{told} in {', '.join(named)} (--ops, --dtype)"
    if key == "pairs":
        return "--pairs" if value else "no --pairs"
    if key == "model":
        return "no --from" if value is None else f"--from a model with the sha256 {value}"
    return f"no {_OPTIONS[key]}" if value is None else f"{_OPTIONS[key]} {value}"


def _elsewhere(path: str, what: str, change: DecisiveChange) -> UserError:
    """Return the refusal of a device or a host that may answer otherwise."""
    if change.name == "cpu_features":  # each side is what the other lacks
        was = f"{what} whose processor has {change.one}"
        return _another(path, was, f"one whose processor has {change.other}")
    return _another(
        path, f"{what} with {change.name} {change.one}", f"{what} with {change.name} {change.other}"
    )


def _another(path: str, was: str, now: Any) -> UserError:
    return UserError(
        f"{path} was begun with {was}, and this is {now}: name the same again, or begin another run"
        " with another --out"
    )


def specification_digest() -> str:
    """Return the digest of all operators' declarations."""
    declared = [
        [operator, type_, [[one.name, list(one.buckets)] for one in known.parameters(type_)]]
        for operator, known in known_operators().items()
        for type_ in known.types
    ]
    return hashlib.sha256(json.dumps(declared).encode()).hexdigest()
