"""In what two runs differ whose answers are to be one run's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edgeflare.devices.cpu_features import features_for_kernels
from edgeflare.run.run_header import RunHeader

DECIDES_ANSWERS = (
    *("machine", "soc", "cpu_features", "runtime", "runtime_version", "kernels", "threads"),
    *("delegate", "delegated_nodes", "adapter", "precision", "fallback"),
)
"""What of a device's provenance decides its answers: many servers tell no `soc`, and kernels are
chosen by the processor's features. The last are not in all older journals."""

HOST_DECIDES_ANSWERS = (
    *("machine", "cpu_features", "runtime", "runtime_version", "original_runtime", "libraries"),
)
"""What of the host decides the answers of original and twin, and which mutants are drawn: kernels
are chosen by the processor's features. Not all of it is in older journals."""

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

    of: Literal["pair", "folding", "option", "device", "host"]
    name: str
    one: str
    other: str


def differences(
    one: RunHeader, other: RunHeader, ignored: Collection[str] = ()
) -> Iterator[RunDifference]:
    """Yield what two runs differ in that decides their answers.

    Args:
        one: what the one run is.
        other: the other.
        ignored: options that may differ, as `plan_options` names them.

    """
    if one.pair["fingerprint"] != other.pair["fingerprint"]:
        yield RunDifference("pair", "pair", str(one.pair["name"]), str(other.pair["name"]))
    yield from _of_folding(one.pair.get("folded_shapes"), other.pair.get("folded_shapes"))
    theirs = plan_options(other.plan.to_json())
    for key, value in plan_options(one.plan.to_json()).items():
        if theirs[key] != value and key not in ignored:
            option = "--" + key.replace("_", "-")
            yield RunDifference("option", option, _shown(value), _shown(theirs[key]))
    for mine, its in zip(one.devices, other.devices, strict=False):
        yield from _of_known(mine["provenance"], its["provenance"], DECIDES_ANSWERS, "device")
    yield from _of_known(one.host, other.host, HOST_DECIDES_ANSWERS, "host")


def known_value(known: Mapping[str, Any], key: str) -> Any:
    """Return what decides answers of what is known under a key of a device or a host.

    Of a processor's features these are the ones by which kernels are chosen: others come and go
    with the system's kernel.
    """
    value = known.get(key)
    return features_for_kernels(value or ()) if key == "cpu_features" else value


def plan_options(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan's fields under the names of the options that set them."""
    set_ = plan.get("parameters", {})
    fields = {
        **plan["goal"],
        **plan,
        "device": ", ".join(plan["devices"]),
        "ensemble": ",".join((*plan["ensemble"], *plan.get("elsewhere", ()))),
        "operators": ",".join(plan["operators"]),
        "coverage": ",".join(f"{one:g}" for one in plan.get("coverage", ())) or None,
        "set": " --set ".join(f"{name}={value}" for name, value in sorted(set_.items())) or None,
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


def _of_known(
    one: Mapping[str, Any],
    other: Mapping[str, Any],
    decisive: Collection[str],
    of: Literal["device", "host"],
) -> Iterator[RunDifference]:
    for key in filter(one.__contains__, decisive):
        mine, its = known_value(one, key), known_value(other, key)
        if key == "cpu_features" and mine != its:
            mine, its = (
                ", ".join(sorted({*here} - {*there})) or "no others"
                for here, there in ((mine, its), (its, mine))
            )
        if mine != its:
            yield RunDifference(of, key, _plain(mine), _plain(its))


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {version}" for name, version in sorted(value.items()))
    return str(value)


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
