"""What a run keeps of its host, in its journal and its document."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import cv2
import msgspec
import numpy as np

from edgeflare_agent import machine
from edgeflare_agent.runtime import runtime_info


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
        runtime_version: version of the package that runs the twin.
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


def describe_host(original: str | None) -> RunHost:
    """Return what is known of this host.

    Args:
        original: the original model, if there is one; see `open_original`.

    """
    described, runtime = machine.describe(), runtime_info()
    return RunHost(
        machine=described.machine,
        soc=described.soc,
        cpu_features=tuple(described.cpu_features),
        os=described.os,
        cores=described.cores,
        python=described.python_version,
        runtime=runtime.name,
        runtime_version=runtime.version,
        original_runtime=None if original is None else _original_runtime(original),
        libraries={"numpy": np.__version__, "opencv": cv2.__version__},
    )


def _original_runtime(original: str) -> str:
    suffix = Path(original).suffix.lower()
    if suffix == ".tflite":
        return str(runtime_info())
    if suffix == ".onnx":
        import onnxruntime  # noqa: PLC0415 - an extra, which the original needed

        return f"onnxruntime {onnxruntime.__version__}"
    return f"Python {platform.python_version()}"
