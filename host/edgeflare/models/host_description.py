"""The description of the host: its machine, and the runtimes of original and twin."""

from __future__ import annotations

import platform
from pathlib import Path

import cv2
import numpy as np

from edgeflare.models.run_host import RunHost
from edgeflare_agent import machine
from edgeflare_agent.runtime import runtime_info


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
