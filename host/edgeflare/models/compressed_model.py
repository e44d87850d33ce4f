"""The compressed model of a pair on the host: under a kernel set, another runtime, or in float.

Runtime versions differ in their kernels, so the model under the runtime of another Python
environment is a member of the twin's ensemble: it predicts devices that run that version.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from edgeflare.errors import UserError, suggestion
from edgeflare.models.agent_code import link_packages
from edgeflare.models.dequantized_model import DEQUANTIZED, open_dequantized
from edgeflare.models.evaluator import ONCE, HostModel, Invocation
from edgeflare.models.model_file import check_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.tflite import OperatorMissing, TFLiteModel, open_tflite
from edgeflare_protos.kernel_sets import (
    TFLITE_KERNEL_SETS,
    Kernels,
    TFLiteKernels,
    is_tflite_kernel_set,
)

__all__ = [
    "CompressedModel",
    "OperatorMissing",
    "compressed_bytes",
    "open_compressed",
    "open_compressed_for",
    "open_in_other_runtime",
    "open_member",
    "read_ensemble",
]


class CompressedModel(HostModel, Protocol):
    """The compressed model on the host."""

    @property
    def runtime(self) -> str:
        """Name and version of the runtime."""


def open_compressed(pair: Pair, kernels: Kernels) -> CompressedModel:
    """Open the compressed model of a pair, called as the pair says.

    Args:
        pair: the pair.
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
        pair: the pair.
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


def read_ensemble(text: str | None) -> tuple[tuple[TFLiteKernels, ...], tuple[str, ...]]:
    """Return the kernel sets of an ensemble, and its members that are none of the host's.

    Both are empty where the default is wanted.

    Raises:
        UserError: one is unknown, or named twice, or the first is no kernel set.

    """
    if text is None:
        return (), ()
    names = [name.strip() for name in text.split(",")]
    elsewhere = [name for name in names if _SEPARATOR in name or name == DEQUANTIZED]
    here: list[TFLiteKernels] = []
    known = (*TFLITE_KERNEL_SETS, DEQUANTIZED)
    for name in names:
        if is_tflite_kernel_set(name):
            here.append(name)
        elif name not in elsewhere:
            raise UserError(
                f"--ensemble: there is no kernel set {name!r}{suggestion(name, known)}; "
                f"known are {', '.join(known)}"
            )
    if names[0] in elsewhere:
        raise UserError(
            f"--ensemble {text}: the first is the twin's own, on this Python's runtime: put"
            f" {' or '.join(TFLITE_KERNEL_SETS)} before {names[0]}"
        )
    for name in elsewhere:
        if name != DEQUANTIZED:
            _split_member(name)
    if len(set(names)) < len(names):
        raise UserError(f"--ensemble {text}: name each kernel set once")
    return tuple(here), tuple(elsewhere)


_SEPARATOR = "@"
"""Separates kernel set and interpreter: "builtin@/opt/old-board/bin/python"."""


def _split_member(member: str) -> tuple[Kernels, str]:
    """Return the kernel set and the interpreter that "KERNELS@PYTHON" names.

    Raises:
        UserError: there is no such kernel set, or no such interpreter.

    """
    kernels, _, python = member.partition(_SEPARATOR)
    if not is_tflite_kernel_set(kernels):
        raise UserError(
            f"{member}: there is no kernel set {kernels!r}; known are"
            f" {', '.join(TFLITE_KERNEL_SETS)}"
        )
    if shutil.which(python) is None:
        raise UserError(
            f"{member}: there is no program {python!r}: name the Python of an environment that has"
            " another TFLite runtime, with its path"
        )
    return kernels, python


@contextmanager
def open_in_other_runtime(
    path: Path, member: str, invocation: Invocation = ONCE
) -> Iterator[TFLiteModel]:
    """Load a `.tflite` file into a worker process of another interpreter.

    Args:
        path: the file.
        member: "KERNELS@PYTHON"; that Python needs numpy and a TFLite runtime, nothing of ours.
        invocation: see `open_tflite`.

    Raises:
        UserError: see `open_tflite`; or there is no such kernel set, or no such interpreter.
        InfrastructureError: no worker process can be started there.

    """
    kernels, python = _split_member(member)
    with TemporaryDirectory(prefix="edgeflare-") as folder:
        packages = Path(folder) / "packages"
        link_packages(packages)
        launcher = ("env", "-u", "PYTHONHOME", f"PYTHONPATH={packages}", python)
        with closing(open_tflite(path, kernels, invocation, launcher=launcher)) as model:
            yield model
