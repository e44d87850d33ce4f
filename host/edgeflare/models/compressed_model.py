"""The compressed model of a pair on the host: under a kernel set, another runtime, or in float."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from edgeflare.models.dequantized_model import DEQUANTIZED, open_dequantized
from edgeflare.models.evaluator import HostModel
from edgeflare.models.invocation import Invocation
from edgeflare.models.model_file import check_model_file
from edgeflare.models.other_runtime import open_in_other_runtime
from edgeflare.models.pair import Pair
from edgeflare.models.tflite import OperatorMissing, open_tflite
from edgeflare_protos.kernel_sets import Kernels

__all__ = [
    "CompressedModel",
    "OperatorMissing",
    "compressed_bytes",
    "open_compressed",
    "open_compressed_for",
    "open_member",
]


class CompressedModel(HostModel, Protocol):
    """The compressed model on the host."""

    @property
    def runtime(self) -> str:
        """Name and version of the runtime."""


def open_compressed(pair: Pair, kernels: Kernels) -> CompressedModel:
    """Open the compressed model of a pair, called as the pair says.

    Args:
        pair: whose.
        kernels: the host's kernels that run it.

    Raises:
        OperatorMissing: the host's runtime lacks an operator that the model needs.
        UserError: the file is none that the runtime takes.
        InfrastructureError: no worker process can be started.

    """
    return open_tflite(pair.executed, kernels, pair.interface.invocation)


def open_compressed_for(
    pair: Pair, kernels: Kernels, invocation: Invocation, *, input_seconds: float
) -> CompressedModel:
    """Open it to be called in another way than the pair says; see `open_compressed`.

    Args:
        pair: whose.
        kernels: the host's kernels that run it.
        invocation: how it is called.
        input_seconds: time that one input may take.

    Raises:
        UserError: also if the runtime cannot call it so.
        InfrastructureError: no worker process can be started.

    """
    return open_tflite(pair.executed, kernels, invocation, input_seconds=input_seconds)


@contextmanager
def open_member(pair: Pair, member: str) -> Iterator[CompressedModel]:
    """Open it under the runtime of another Python, "KERNELS@PYTHON", or "dequantized".

    Raises:
        UserError: see `open_in_other_runtime` and `open_dequantized`.
        InfrastructureError: no worker process can be started there.

    """
    opened = (
        open_dequantized(pair.executed, pair.interface.invocation)
        if member == DEQUANTIZED
        else open_in_other_runtime(pair.executed, member, pair.interface.invocation)
    )
    with opened as model:
        yield model


def compressed_bytes(pair: Pair) -> int:
    """Return the size of its file.

    Raises:
        UserError: it is no model file.

    """
    check_model_file(pair.compressed)
    return pair.compressed.stat().st_size
