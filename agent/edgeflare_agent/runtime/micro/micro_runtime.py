"""TensorFlow Lite Micro as a `ModelRuntime`."""

from __future__ import annotations

import importlib
import importlib.util
from importlib import metadata
from typing import Final

from edgeflare_agent.runtime.model_runtime import (
    ModelRuntime,
    OpenedModel,
    Options,
    RuntimeInfo,
    RuntimeMissing,
)
from edgeflare_agent.runtime.tflite.tflite_runtime import TFLiteRuntime
from edgeflare_protos.kernel_sets import RUNTIME_PACKAGES, Kernels

_PACKAGE: Final = RUNTIME_PACKAGES["micro"]


class MicroRuntime:
    """See `ModelRuntime`; its files are those of TFLite."""

    def misfit(self, head: bytes) -> str | None:
        """See `ModelRuntime`."""
        return TFLiteRuntime().misfit(head)

    def offers(self, kernels: Kernels) -> bool:
        """See `ModelRuntime`. TFLite's interpreter has to be there too, which reads the file."""
        return importlib.util.find_spec(_PACKAGE.module) is not None and TFLiteRuntime().offers(
            kernels
        )

    def load(self) -> RuntimeInfo:
        """See `ModelRuntime`."""
        if not self.offers("micro"):
            raise RuntimeMissing(
                f"TensorFlow Lite Micro is not installed: {_PACKAGE.mend}, or pip install"
                f" {_PACKAGE.distribution} where the agent runs {_PACKAGE.remark}"
            )
        importlib.import_module(f"{_PACKAGE.module}.python.tflite_micro.runtime")
        return RuntimeInfo(_PACKAGE.distribution, metadata.version(_PACKAGE.distribution))

    def open(self, content: bytes, options: Options) -> OpenedModel:
        """See `ModelRuntime`."""
        # A parent that only asks whether a file fits does not need it.
        from edgeflare_agent.runtime.micro.micro_model import MicroModel  # noqa: PLC0415

        return MicroModel(content, options)


RUNTIME: Final[ModelRuntime] = MicroRuntime()
