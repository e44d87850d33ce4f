"""Where a result comes from: what is known of a device and of how models ran on it.

What of it decides the answers of a device, and of a host, is one list by which work is joined. A
run that is gone on with, merged with another, or taken as a screening, a repair that is resumed, an
explanation that trusts a run's answers, and a device that comes back are all held to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from edgeflare.devices.profile import Precision
from edgeflare.models.run_host import RunHost
from edgeflare.record.json_types import Count, CountFromOne, Number


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a device is, as its agent told and as its profile asked.

    Attributes:
        name: the profile's name.
        transport: what brought the agent up; "emulated" is a process on this host.
        machine: architecture as the kernel names it, "x86_64" or "aarch64".
        soc: system on chip or CPU model; empty where the system does not tell.
        cpu_features: features of the CPU as the kernel lists them, sorted.
        os: operating system and its version.
        cores: logical cores that the agent may use.
        governor: CPU frequency governor; empty where the system does not tell.
        python: version of the Python that runs the agent.
        runtime: the package that runs the models, "ai-edge-litert", "tflite-runtime" or
            "tflite-micro".
        runtime_version: version of that package.
        kernels: the kernels that were asked for.
        threads: interpreter threads.
        link_delay_seconds: emulated latency; 0 unless the profile injects some.
        agent_version: the agent's own version.
        protocol: version of the wire protocol that the agent speaks, "major.minor".
        delegated_nodes: nodes that a delegate really took of the model opened last, else null.
        total_nodes: nodes of that model.
        delegate: the library of the external delegate that was asked for, or null.
        external_nodes: those of the delegated nodes that it really took, else null.
        adapter: what the accelerator of the kernels computes on, as its driver says; null where
            there is none.
        precision: what that accelerator was asked to compute in, "fp16" or "fp32"; likewise.
        fallback: whether nodes that it does not take run on the CPU; likewise.
        arena_bytes: size of the arena that the model opened last takes; null where its runtime has
            none.
        cache: the folder on the device where agent and models stay, or null where none do; one
            that begins with `~/` is in the home there.

    """

    name: str
    transport: str
    machine: str
    soc: str
    cpu_features: tuple[str, ...]
    os: str
    cores: int
    governor: str
    python: str
    runtime: str
    runtime_version: str
    kernels: str
    threads: int
    link_delay_seconds: Number
    agent_version: str
    protocol: str
    delegated_nodes: Count | None = None
    total_nodes: Count | None = None
    delegate: str | None = None
    external_nodes: Count | None = None
    adapter: str | None = None
    precision: Precision | None = None
    fallback: bool | None = None
    arena_bytes: CountFromOne | None = None
    cache: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return this as values that the json module writes as they are."""
        return {**asdict(self), "cpu_features": list(self.cpu_features)}


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The state of a device at one moment; what the system does not tell is empty.

    Attributes:
        temperatures: degrees Celsius, by thermal zone.
        frequencies: MHz, by core.
        agent_rss_bytes: resident memory of the agent itself.
        worker_rss_bytes: resident memory of each worker process.
        worker_restarts: workers replaced since the agent began.
        quarantined_inputs: inputs that are not run again, having failed twice.
        store_bytes: bytes in the model store.
        uptime_seconds: time since the agent began.

    """

    temperatures: dict[str, float] = field(default_factory=dict)
    frequencies: dict[str, float] = field(default_factory=dict)
    agent_rss_bytes: int = 0
    worker_rss_bytes: tuple[int, ...] = ()
    worker_restarts: int = 0
    quarantined_inputs: int = 0
    store_bytes: int = 0
    uptime_seconds: float = 0.0


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
