"""The two packages that provide a TFLite runtime: which one is installed, in which version."""

from __future__ import annotations

import importlib
from typing import Any

from edgeflare_agent.runtime.model_runtime import RuntimeInfo, RuntimeMissing

# In order of preference: distribution, and the module that holds its interpreter.
_PACKAGES = {
    "ai-edge-litert": "ai_edge_litert.interpreter",
    "tflite-runtime": "tflite_runtime.interpreter",
}


def runtime_info() -> RuntimeInfo:
    """Return the runtime that runs models here, without importing its interpreter.

    Raises:
        RuntimeMissing: neither package is installed.

    """
    for name, module in _PACKAGES.items():
        try:
            package = importlib.import_module(module.partition(".")[0])
        except ImportError:
            continue
        version = getattr(package, "__version__", None)
        if not version:
            # Imported here, since it takes as long as half of numpy, and each worker would pay.
            from importlib import metadata  # noqa: PLC0415

            version = metadata.version(name)
        return RuntimeInfo(name, version)
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
