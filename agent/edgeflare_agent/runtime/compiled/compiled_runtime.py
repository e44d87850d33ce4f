"""LiteRT's CompiledModel as a `ModelRuntime`."""

from __future__ import annotations

import importlib.util
import re
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final

from edgeflare_agent.runtime.model_runtime import (
    ModelRuntime,
    OpenedModel,
    RuntimeInfo,
    RuntimeMissing,
)
from edgeflare_agent.runtime.session_options import Options
from edgeflare_agent.runtime.tflite.packages import runtime_info
from edgeflare_agent.runtime.tflite.tflite_runtime import TFLiteRuntime
from edgeflare_protos.kernel_sets import Kernels

_DISTRIBUTION: Final = "ai-edge-litert"
_PACKAGE: Final = "ai_edge_litert"

_OLDEST: Final = (2, 3)
"""Of its versions. Those before have a compiled model whose options lack threads and precision."""

_LIBRARIES: Final = {
    "compiled-cpu": "compiled_model.py",
    "gpu": "libLiteRt*GpuAccelerator.so",
    "npu": "vendors/*/dispatch/libLiteRtDispatch_*.so",
}
"""The file of the package without which there is no such accelerator."""

_VENDOR_PACKAGES: Final = tuple(
    f"ai-edge-litert-sdk-{vendor}" for vendor in ("intel", "qualcomm", "mediatek", "google-tensor")
)
"""Packages with vendors' own libraries. The runtime brings a dispatch library for machines that
have none of them, so that file alone says nothing of an NPU."""


class CompiledRuntime:
    """See `ModelRuntime`; its files are those of TFLite."""

    def misfit(self, head: bytes) -> str | None:
        """See `ModelRuntime`."""
        return TFLiteRuntime().misfit(head)

    def offers(self, kernels: Kernels) -> bool:
        """See `ModelRuntime`. Whether there is a driver is known once a model is opened."""
        found = importlib.util.find_spec(_PACKAGE)
        if found is None or found.origin is None or _version() < _OLDEST:
            return False
        package = Path(found.origin).parent
        has = any(package.glob(_LIBRARIES[kernels]))
        has = has and (kernels != "npu" or _has_vendor_package())
        return has and (package / _LIBRARIES["compiled-cpu"]).exists()

    def load(self) -> RuntimeInfo:
        """See `ModelRuntime`."""
        if not self.offers("compiled-cpu"):
            raise RuntimeMissing(
                "no runtime with accelerators is installed: pip install"
                f" '{_DISTRIBUTION}>={'.'.join(map(str, _OLDEST))}'"
            )
        importlib.import_module(f"{_PACKAGE}.compiled_model")
        return runtime_info()

    def open(self, content: bytes, options: Options) -> OpenedModel:
        """See `ModelRuntime`."""
        # A parent that only asks whether a file fits does not need it.
        from edgeflare_agent.runtime.compiled.accelerated_model import (  # noqa: PLC0415
            AcceleratedModel,
        )

        return AcceleratedModel(content, options)


def _version() -> tuple[int, ...]:
    """Return the first two numbers of the installed version; none where it is not known."""
    try:
        version = metadata.version(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return ()
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def _has_vendor_package() -> bool:
    for name in _VENDOR_PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            metadata.version(name)
            return True
    return False


RUNTIME: Final[ModelRuntime] = CompiledRuntime()
