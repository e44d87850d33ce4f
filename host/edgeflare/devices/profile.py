"""A device profile: all that is set for one device; and names with a kernel set behind them.

`NAME/KERNELS` is a device with another kernel set. `NAME/all`, each of them, is a name and no
profile, since which kernel sets there are is known once the device is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from edgeflare_protos.kernel_sets import Kernels, is_kernel_set, is_tflite_kernel_set

Precision = Literal["fp16", "fp32"]
"""What an accelerator computes in: float16 where it likes, or float32 throughout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a device is reached, and how models run on it.

    Attributes:
        name: the file's name without its ending, or the address that was asked for.
        description: one line for people.
        source: the file that says all this; None for an address profile made on the spot.
        transport: what brings the agent up, by the name under which it is registered.
        kernels: the kernels that models run on.
        threads: interpreter threads.
        delegate: path on the device of an external delegate's library, or None.
        delegate_options: what that library is told.
        precision: what an accelerator computes in, "fp16" where it likes or "fp32" throughout.
        fallback: whether nodes that an accelerator does not take run on the CPU; else a model that
            has some is refused.
        arena_bytes: the most that the arena of a model may take, where the runtime has one; None
            for any size.
        warmup: inputs of zeros to run before a session counts as open.
        input_timeout_seconds: time that one input may take before it counts as a hang.
        connect_timeout_seconds: time that the device may take to let the host in; None for the
            usual.
        upload_timeout_seconds: time that a model or an agent may take to be sent; None for what its
            size takes over a slow link.
        start_timeout_seconds: time that the agent may take to start; None for the usual.
        canary_every: device queries from one canary input to the next; 0 for none.
        pause_above_celsius: temperature above which the device is left to cool; None for no limit.
        thermal_zones: names of the zones that this temperature is taken from, with `*` for
            anything; none for all but those that are known to tell no temperature.
        python: an interpreter with a runtime that runs the agent, in place of the host's own or of
            a bundle.
        reservation: what is reserved while the device is open, as SYSTEM:PLACE; None for nothing.
        link_delay_seconds: emulated latency, added to each round trip of an emulated device.
        runtime: the TFLite runtime of the bundle, as `edgeflare agent bundle --runtime` takes it.
        cpu: the core that is emulated, by its emulator's name for it.
        serial: the serial number by which the device is found; None for the only one attached.
        host: the host to connect to, or an alias for it, perhaps with user and port.
        cache: folder on the device that holds bundles and models; None for the transport's usual.
        cache_limit_mib: MiB that its models may take.
        agent_device: what tells it from other devices of the same machine, each with an agent of
            its own; None for the only one there.
        address: host:port of an agent that somebody started.
        tls_ca: PEM file with the certificate authority that vouches for that agent.
        token_file: file with the token that lets the host in there.
        options: the values of keys that only this transport knows and no attribute above holds.

    """

    name: str
    transport: str
    description: str = ""
    source: Path | None = None
    kernels: Kernels = "xnnpack"
    threads: int = 1
    delegate: str | None = None
    delegate_options: Mapping[str, str] = field(default_factory=dict)
    precision: Precision = "fp16"
    fallback: bool = False
    arena_bytes: int | None = None
    warmup: int = 0
    input_timeout_seconds: float = 10.0
    connect_timeout_seconds: int | None = None
    upload_timeout_seconds: int | None = None
    start_timeout_seconds: int | None = None
    canary_every: int = 1000
    pause_above_celsius: float | None = None
    thermal_zones: tuple[str, ...] = ()
    python: str | None = None
    reservation: str | None = None
    link_delay_seconds: float = 0.0
    runtime: str = "litert"
    cpu: str | None = None
    serial: str | None = None
    host: str | None = None
    cache: str | None = None
    cache_limit_mib: int = 1024
    agent_device: str | None = None
    address: str | None = None
    tls_ca: Path | None = None
    token_file: Path | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def value(self, key: str) -> object:
        """Return the value of a key, None where it has none."""
        return getattr(self, key) if key in _FIELDS else self.options.get(key)

    def with_kernels(self, kernels: Kernels) -> Profile:
        """Return this profile on another kernel set.

        The delegate stays with the kernel sets of TFLite's interpreter, which alone loads one.
        """
        if is_tflite_kernel_set(kernels):
            return replace(self, kernels=kernels)
        return replace(self, kernels=kernels, delegate=None, delegate_options={})

    def with_values(self, values: Mapping[str, Any]) -> Profile:
        """Return this profile with other values of some keys, by their names."""
        known = {key: value for key, value in values.items() if key in _FIELDS}
        others = {key: value for key, value in values.items() if key not in _FIELDS}
        return replace(self, options={**self.options, **others}, **known)


_FIELDS = frozenset(key.name for key in fields(Profile)) - {"name", "source", "options"}


EMULATED_ALL: Final = "emulated-all"
"""Each kernel set that an emulated device has on this host."""

_ALL: Final = "all"


def split_kernels(name: str) -> tuple[str, Kernels | None]:
    """Return the name of a device, and the kernel set that is named behind it, if one is."""
    base, behind = _split(name)
    return (base, behind) if is_kernel_set(behind) else (name, None)


def names_all(name: str) -> bool:
    """Tell whether a name means every kernel set that a device offers."""
    return name == EMULATED_ALL or _split(name)[1] == _ALL


def without_all(name: str) -> str:
    """Return the name of the device itself."""
    return name.removesuffix(f"/{_ALL}")


def _split(name: str) -> tuple[str, str]:
    """Return what stands before and behind the last slash; of an address alone nothing behind."""
    base, separator, behind = name.rpartition("/")
    if not separator or not base or base.endswith(":/"):
        return name, ""
    return base, behind
