"""What decides the answers of a device and of a host: the one list by which work is joined.

A run that is gone on with, merged with another, or taken as a screening, a repair that is resumed,
an explanation that trusts a run's answers, and a device that comes back are all held to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edgeflare.devices.provenance import Provenance
from edgeflare.models.run_host import RunHost

_FOR_KERNELS = (
    # ARM: vectors; half precision; dot products and matrix products of int8; bfloat16; SVE.
    *("neon", "asimd", "fphp", "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2", "sme"),
    # x86, likewise.
    *("sse4_1", "avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni"),
    *("avx512vbmi", "gfni", "avx512_fp16", "avx512_bf16", "avx_vnni_int8", "amx_int8"),
)
"""CPU features, in the kernel's names, that XNNPACK and ruy ask for when they choose."""

DEVICE_DECIDES: Final = (
    *("machine", "soc", "cpu_features", "runtime", "runtime_version", "kernels", "threads"),
    *("delegate", "adapter", "precision", "fallback"),
)
"""What of a device's provenance decides its answers, whatever the model. Many servers tell no
`soc`, and kernels are chosen by the processor's features."""

OPENED_MODEL_DECIDES: Final = ("delegated_nodes", "external_nodes", "total_nodes", "arena_bytes")
"""What of it is known of the model opened last, where all answers are one model's."""

HOST_DECIDES: Final = (
    *("machine", "cpu_features", "runtime", "runtime_version", "original_runtime", "libraries"),
)
"""What of the host decides the answers of original and twin, and which inputs are drawn."""


@dataclass(frozen=True, slots=True)
class DecisiveChange:
    """A difference of two devices or hosts by which they may answer differently.

    Attributes:
        name: name of what is known of them.
        one: the one's value, in words.
        other: the other's; of a processor's features, each has what the other lacks.

    """

    name: str
    one: str
    other: str


def decisive(known: Provenance | RunHost, keys: Sequence[str]) -> dict[str, object]:
    """Return what is known under some keys, as far as it decides answers, as plain JSON values.

    Of a processor's features these are the ones by which kernels are chosen: others come and go
    with the system's kernel.
    """
    decides = {key: getattr(known, key) for key in keys}
    if "cpu_features" in decides:
        decides["cpu_features"] = list(features_for_kernels(known.cpu_features))
    return decides


def decisive_changes(
    one: Provenance | RunHost, other: Provenance | RunHost, keys: Sequence[str]
) -> Iterator[DecisiveChange]:
    """Yield in what two devices or hosts differ that decides answers.

    Args:
        one: what is known of the one.
        other: what is known of the other.
        keys: one or more of the lists above.

    """
    mine, theirs = decisive(one, keys), decisive(other, keys)
    for key, value in mine.items():
        if value == theirs[key]:
            continue
        if key == "cpu_features":
            has, its = (set(features_for_kernels(side.cpu_features)) for side in (one, other))
            lacked = (has - its, its - has)
            yield DecisiveChange(key, *(", ".join(sorted(x)) or "no others" for x in lacked))
        else:
            yield DecisiveChange(key, _plain(value), _plain(theirs[key]))


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {version}" for name, version in sorted(value.items()))
    return str(value)


def features_for_kernels(features: Iterable[str]) -> tuple[str, ...]:
    """Return those of a CPU's features by which the runtimes choose kernels, oldest first."""
    present = set(features)
    return tuple(name for name in _FOR_KERNELS if name in present)
