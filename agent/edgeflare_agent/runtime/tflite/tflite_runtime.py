"""TFLite's interpreter as a `ModelRuntime`."""

from __future__ import annotations

from typing import Final

from edgeflare_agent.runtime.model_runtime import (
    ModelRuntime,
    OpenedModel,
    Options,
    RuntimeInfo,
    RuntimeMissing,
)
from edgeflare_agent.runtime.tflite.packages import interpreter_module, runtime_info
from edgeflare_protos.kernel_sets import Kernels


class TFLiteRuntime:
    """See `ModelRuntime`; its files are flatbuffers with the identifier TFL3."""

    def misfit(self, head: bytes) -> str | None:
        """See `ModelRuntime`."""
        if head[4:] == b"TFL3":
            return None
        return "it is not a TFLite model (no flatbuffer with identifier TFL3)"

    def offers(self, kernels: Kernels) -> bool:  # noqa: ARG002 - it has all of its own
        """See `ModelRuntime`."""
        try:
            runtime_info()
        except RuntimeMissing:
            return False
        return True

    def load(self) -> RuntimeInfo:
        """See `ModelRuntime`."""
        interpreter_module()
        return runtime_info()

    def open(self, content: bytes, options: Options) -> OpenedModel:
        """See `ModelRuntime`."""
        # A parent that only asks whether a file fits does not need it.
        from edgeflare_agent.runtime.tflite.interpreter import LoadedModel  # noqa: PLC0415

        return LoadedModel(content, options)


RUNTIME: Final[ModelRuntime] = TFLiteRuntime()
