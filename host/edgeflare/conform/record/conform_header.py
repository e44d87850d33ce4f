"""What conformance run this is: the part of its journal that is known before the first round."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.devices.provenance import (
    DEVICE_DECIDES,
    HOST_DECIDES,
    DecisiveChange,
    Provenance,
    decisive_changes,
)
from edgeflare.errors import UserError
from edgeflare.models.run_host import RunHost
from edgeflare.record.json_types import Amount, Count, CountFromOne
from edgeflare.record.request import Option, require_same_request

_DrawingName = Literal["uniform", "memo"]
"""How models are drawn: evenly over operators and types, or by MEMO's loop."""

Graphs = Literal["also", "only", "none"]
"""Whether graphs of operators are tried: after single operators, alone, or not at all."""

_FEW: Final = 6
"""Operators that are named."""


@dataclass(frozen=True, slots=True)
class ConformHeader:
    """What conformance run it is.

    Attributes:
        version: version of edgeflare that began it.
        request: what was asked.
        device: provenance of the device.
        host: what is known of the host, which has the other kernel sets.
        specification: digest of all operators' declarations; other ones draw other models.

    """

    version: str
    request: ConformRequest
    device: Provenance
    host: RunHost
    specification: str

    @property
    def host_runtime(self) -> str:
        """The runtime of the host's kernel sets, such as "ai-edge-litert 2.3.0"."""
        return f"{self.host.runtime} {self.host.runtime_version}"

    def require_same(self, other: ConformHeader, path: str) -> None:
        """Refuse to go on with this run as another.

        Raises:
            UserError: they differ in more than how long it may take and the device's name, or it
                may take less.

        """
        for change in decisive_changes(self.device, other.device, DEVICE_DECIDES):
            raise _elsewhere(path, "a device", change)
        require_same_request(self.request, other.request, Path(path))
        for change in decisive_changes(self.host, other.host, HOST_DECIDES):
            raise _elsewhere(path, "a host", change)
        if self.specification != other.specification:
            raise _another(
                path, "other declarations of the operators", f"those of edgeflare {other.version}"
            )


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
        [
            operator,
            type_,
            [[parameter.name, list(parameter.buckets)] for parameter in known.parameters(type_)],
        ]
        for operator, known in known_operators().items()
        for type_ in known.types
    ]
    return hashlib.sha256(json.dumps(declared).encode()).hexdigest()


def _cells_in_words(cells: Sequence[Cell]) -> str:
    operators = list(dict.fromkeys(operator for operator, _ in cells))
    named = ",".join(operators) if len(operators) <= _FEW else f"of {len(operators)} operators"
    return f"{named} --dtype {','.join(dict.fromkeys(type_ for _, type_ in cells))}"


def _seconds_in_words(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds:.12g}s"  # no powers of ten: nobody types them


def _graphs_in_words(graphs: Graphs) -> str | None:
    return {"also": None, "only": "", "none": "none"}[graphs]


def _model_in_words(sha256: str | None) -> str | None:
    return None if sha256 is None else f"a model with the sha256 {sha256[:12]}…"


@dataclass(frozen=True, slots=True)
class ConformRequest:
    """What was asked.

    Attributes:
        cells: operators and types to try.
        drawing: how models are drawn.
        graphs: whether graphs of operators are tried: besides the operators, alone, or not at all.
        models: how many to draw; null where the time alone ends it.
        time_limit_seconds: how long it may take, shrinking included; null where the count alone
            ends it.
        rng_seed: run seed, from which all that is drawn follows.
        model: sha256 of the model whose operators come first; null for none.

    """

    cells: Annotated[tuple[Cell, ...], Option("--ops", _cells_in_words)]
    drawing: Annotated[_DrawingName, Option("--draw")]
    graphs: Annotated[Graphs, Option("--graphs", _graphs_in_words)]
    models: CountFromOne | None
    time_limit_seconds: Annotated[
        Amount | None, Option("--time-limit", _seconds_in_words, more="longer")
    ]
    rng_seed: Count
    model: Annotated[str | None, Option("--from", _model_in_words)] = None
