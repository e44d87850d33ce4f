"""The two packages that hold a TFLite runtime: which one is here, and in which version."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib import metadata
from typing import Any

# In order of preference: distribution, and the module that holds its interpreter.
_PACKAGES = {
    "ai-edge-litert": "ai_edge_litert.interpreter",
    "tflite-runtime": "tflite_runtime.interpreter",
}


@dataclass(frozen=True)
class RuntimeInfo:
    """A TFLite runtime: the package's name and version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class RuntimeMissing(Exception):  # noqa: N818
    """No TFLite runtime is installed; the message is one line and says what to type."""


def runtime_info() -> RuntimeInfo:
    """Return the runtime that runs models here, without importing it.

    Raises:
        RuntimeMissing: neither package is installed.

    """
    for name in _PACKAGES:
        try:
            return RuntimeInfo(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            continue
    raise RuntimeMissing(
        "no TFLite runtime is installed: pip install ai-edge-litert, "
        'or, on Python up to 3.11, pip install tflite-runtime "numpy<2"'
    )


def interpreter_module() -> Any:
    """Import the runtime's module with `Interpreter`, `OpResolverType` and `load_delegate`.

    Raises:
        RuntimeMissing: neither package is installed.

    """
    return importlib.import_module(_PACKAGES[runtime_info().name])
