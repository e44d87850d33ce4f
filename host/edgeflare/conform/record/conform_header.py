"""What conformance run this is: the part of its journal that is known before the first round."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.record.conform_request import ConformRequest
from edgeflare.devices.cpu_features import features_for_kernels
from edgeflare.errors import UserError

_SAME_DEVICE: Final = (
    "name",
    "machine",
    "soc",
    "runtime",
    "runtime_version",
    "kernels",
    "threads",
    "delegate",
    "adapter",
    "precision",
    "fallback",
)
"""Of the provenance, what has to be as it was for the answers to be."""


@dataclass(frozen=True, slots=True)
class ConformHeader:
    """What conformance run it is.

    Attributes:
        version: of edgeflare, which began it.
        request: what was asked.
        device: provenance of the device, as plain JSON values.
        host: the runtime of the host's kernel sets, such as "ai-edge-litert 2.3.0".
        specification: digest of all operators' declarations; other ones draw other models.
        processor: the host's machine and its processor's features; empty in older journals.

    """

    version: str
    request: ConformRequest
    device: Mapping[str, Any]
    host: str
    specification: str
    processor: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "version": self.version,
            "request": self.request.to_json(),
            "device": dict(self.device),
            "host": self.host,
            "specification": self.specification,
            "processor": self.processor,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ConformHeader:
        """Return the header that `to_json` wrote."""
        return cls(
            values["version"],
            ConformRequest.from_json(values["request"]),
            values["device"],
            values["host"],
            values["specification"],
            values.get("processor", ""),
        )

    def require_same(self, other: ConformHeader, path: str) -> None:
        """Refuse to go on with this run as another.

        Raises:
            UserError: they differ in more than how long it may take, or it may take less.

        """
        for key in _SAME_DEVICE:
            if (was := self.device.get(key)) != (now := other.device.get(key)):
                raise _another(path, f"a device whose {key.replace('_', ' ')} was {was}", now)
        was_asked, now_asked = self.request.to_json(), other.request.to_json()
        for key, was in was_asked.items():
            if key != "seconds" and was != now_asked[key]:
                shown = _asked(key, was), _asked(key, now_asked[key])
                raise _another(path, *(shown if shown[0] != shown[1] else ("others", "these")))
        self._require_as_long(other, path)
        if self.host != other.host:
            raise _another(path, f"the host's runtime {self.host}", other.host)
        mine, theirs = _decisive(self.processor), _decisive(other.processor)
        if self.processor and mine != theirs:
            raise _another(
                path, f"a host whose processor was {_but(mine, theirs)}", _but(theirs, mine)
            )
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


def _another(path: str, was: str, now: Any) -> UserError:
    return UserError(
        f"{path} was begun with {was}, and this is {now}: name the same again, or begin another run"
        " with another --out"
    )


def _decisive(processor: str) -> frozenset[str]:
    """Return the machine and the features by which kernels are chosen."""
    machine, *features = processor.split() or [""]
    return frozenset({machine, *features_for_kernels(features)})


def _but(processor: frozenset[str], other: frozenset[str]) -> str:
    """Return what a processor has that another one lacks."""
    had = processor - other
    return f"one with {', '.join(sorted(had))}" if had else "one without these"


def specification_digest() -> str:
    """Return the digest of all operators' declarations."""
    declared = [
        [operator, type_, [[one.name, list(one.buckets)] for one in known.parameters(type_)]]
        for operator, known in known_operators().items()
        for type_ in known.types
    ]
    return hashlib.sha256(json.dumps(declared).encode()).hexdigest()
