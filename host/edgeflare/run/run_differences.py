"""In what two runs differ whose answers are to be one run's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edgeflare.devices.decisive_provenance import (
    DEVICE_DECIDES,
    HOST_DECIDES,
    OPENED_MODEL_DECIDES,
    decisive_changes,
)
from edgeflare.run.run_header import RunHeader

_SHOWN = 60
"""Characters of an option's value that a message shows."""


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
        ignored: options that may differ, as `plan_options` names them.

    """
    commands = made_by(one.plan.strategy), made_by(other.plan.strategy)
    if commands[0] != commands[1]:
        yield RunDifference("command", "command", *commands)
    if one.pair["fingerprint"] != other.pair["fingerprint"]:
        yield RunDifference("pair", "pair", str(one.pair["name"]), str(other.pair["name"]))
    yield from _of_folding(one.pair.get("folded_shapes"), other.pair.get("folded_shapes"))
    theirs = plan_options(other.plan.to_json())
    for key, value in plan_options(one.plan.to_json()).items():
        if theirs[key] != value and key not in ignored:
            option = "--" + key.replace("_", "-")
            yield RunDifference("option", option, _shown(value), _shown(theirs[key]))
    for mine, its in zip(one.devices, other.devices, strict=False):
        known = (mine["provenance"], its["provenance"])
        for change in decisive_changes(*known, (*DEVICE_DECIDES, *OPENED_MODEL_DECIDES)):
            yield RunDifference("device", change.name, change.one, change.other)
    for change in decisive_changes(one.host, other.host, HOST_DECIDES):
        yield RunDifference("host", change.name, change.one, change.other)


def made_by(strategy: str) -> str:
    """Return the command that makes runs whose plan names a strategy."""
    return strategy if strategy in ("survey", "replay") else "search"


def plan_options(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan's fields under the names of the options that set them."""
    set_ = plan.get("parameters", {})
    fields = {
        "strategy": plan["strategy"],  # the first, since it sets others
        **plan["goal"],
        **plan,
        "device": ", ".join(plan["devices"]),
        "ensemble": ",".join((*plan["ensemble"], *plan.get("elsewhere", ()))),
        "operators": ",".join(plan["operators"]),
        "coverage": ",".join(f"{one:g}" for one in plan.get("coverage", ())) or None,
        "set": " --set ".join(f"{name}={value}" for name, value in sorted(set_.items())) or None,
        "first": plan.get("first"),
        "seed_ids": plan.get("seed_ids"),
    }
    for gathered in ("goal", "devices", "elsewhere", "parameters"):
        fields.pop(gathered, None)
    return {
        **{key: "none" if value is None else value for key, value in fields.items()},
        "ties": "include" if fields["ties"] else "exclude",
    }


def _of_folding(
    one: Mapping[str, Any] | None, other: Mapping[str, Any] | None
) -> Iterator[RunDifference]:
    if (one is None) != (other is None):
        said = ("with", "without") if one else ("without", "with")
        yield RunDifference("folding", "--fold-shapes", *said)
    elif one and other and one["sha256"] != other["sha256"]:
        yield RunDifference("folding", "folded model", one["sha256"], other["sha256"])


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
