"""LiteRT's CompiledModel as a `ModelRuntime`."""

from __future__ import annotations

import importlib.util
import re
from importlib import metadata
from pathlib import Path
from typing import Final

from edgeflare_agent.runtime.model_runtime import (
    ModelRuntime,
    OpenedModel,
    Options,
    RuntimeInfo,
    RuntimeMissing,
)
from edgeflare_agent.runtime.tflite.packages import runtime_info
from edgeflare_agent.runtime.tflite.tflite_runtime import TFLiteRuntime
from edgeflare_protos.kernel_sets import FIRST_COMPILED, VENDOR_SDKS, Kernels, equipped_vendors

_DISTRIBUTION: Final = "ai-edge-litert"
_PACKAGE: Final = "ai_edge_litert"

_LIBRARIES: Final = {
    "compiled-cpu": "compiled_model.py",
    "gpu": "libLiteRt*GpuAccelerator.so",
}
"""The file of the package without which there is no such accelerator; an NPU needs more."""


class CompiledRuntime:
    """See `ModelRuntime`; its files are those of TFLite."""

    def misfit(self, head: bytes) -> str | None:
        """See `ModelRuntime`."""
        return TFLiteRuntime().misfit(head)

    def offers(self, kernels: Kernels) -> bool:
        """See `ModelRuntime`. Whether there is a driver is known once a model is opened."""
        found = importlib.util.find_spec(_PACKAGE)
        if found is None or found.origin is None or _version() < FIRST_COMPILED:
            return False
        package = Path(found.origin).parent
        if not (package / _LIBRARIES["compiled-cpu"]).exists():
            return False
        if kernels == "npu":
            sdks = {sdk for sdk in VENDOR_SDKS.values() if _version_of(sdk)}
            return bool(equipped_vendors(package, sdks))
        return any(package.glob(_LIBRARIES[kernels]))

    def load(self) -> RuntimeInfo:
        """See `ModelRuntime`."""
        if not self.offers("compiled-cpu"):
            raise RuntimeMissing(
                "no runtime with accelerators is installed: pip install"
                f" '{_DISTRIBUTION}>={'.'.join(map(str, FIRST_COMPILED))}'"
            )
        importlib.import_module(f"{_PACKAGE}.compiled_model")
        return runtime_info()

    def open(self, content: bytes, options: Options) -> OpenedModel:
        """See `ModelRuntime`."""
        # A parent that only asks whether a file fits does not need it.
        from edgeflare_agent.runtime.compiled.accelerator_model import (  # noqa: PLC0415
            AcceleratedModel,
        )

        return AcceleratedModel(content, options)


def _version() -> tuple[int, ...]:
    """Return the first three numbers of the installed version; none where it is not known."""
    return tuple(map(int, re.findall(r"\d+", _version_of(_DISTRIBUTION))[:3]))


def _version_of(distribution: str) -> str:
    """Return the version of a package that is installed; empty where it is not."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


RUNTIME: Final[ModelRuntime] = CompiledRuntime()
