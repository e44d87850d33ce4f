"""What a run keeps of its host, in its journal and its document."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class RunHost(msgspec.Struct, frozen=True, kw_only=True):
    """What ran the original and the twin.

    Attributes:
        machine: architecture as the kernel names it.
        soc: system on chip or CPU model; empty where the system does not tell.
        cpu_features: as the kernel lists them, sorted.
        os: operating system and its version.
        cores: logical cores that may be used.
        python: version of Python.
        runtime: the package that runs the twin.
        runtime_version: that package's version.
        original_runtime: what runs the original; null where there is none.
        libraries: versions of what mutants are drawn and computed with, by package.

    """

    machine: str
    soc: str
    cpu_features: tuple[str, ...]
    os: str
    cores: int
    python: str
    runtime: str
    runtime_version: str
    original_runtime: str | None
    libraries: Mapping[str, str]
