"""Where a result comes from: everything that is known of a device and how models ran on it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from edgeflare.devices.profile import Precision
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
        link_delay_ms: emulated latency; 0 unless the profile injects some.
        agent_version: the agent's own version.
        protocol: version of the wire protocol that the agent speaks, "major.minor".
        delegated_nodes: nodes that a delegate really took of the model opened last, else None.
        total_nodes: nodes of that model.
        delegate: the library of the external delegate that was asked for, or None.
        external_nodes: those of the delegated nodes that it really took; None where that is not
            known.
        adapter: what the accelerator of the kernels computes on, as its driver says; None where
            there is none.
        precision: what that accelerator was asked to compute in, "fp16" or "fp32"; likewise.
        fallback: whether nodes that it does not take run on the CPU; likewise.
        arena_bytes: size of the arena that the model opened last takes; None where its runtime has
            none.
        cache: the folder on the device where agent and models stay, or None where none do; one
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
    link_delay_ms: Number
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
