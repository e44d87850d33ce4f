"""A TFLite model under another runtime of this host, in another Python environment.

Runtime versions differ in their kernels, so such a model is a member of the twin's ensemble: it
predicts devices that run that version.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from edgeflare.errors import UserError
from edgeflare.models.agent_code import link_packages
from edgeflare.models.invocation import ONCE, Invocation
from edgeflare.models.tflite import TFLiteModel, open_tflite
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS, Kernels, is_tflite_kernel_set

SEPARATOR = "@"
"""Between kernel set and interpreter: "builtin@/opt/old-board/bin/python"."""


def split_member(member: str) -> tuple[Kernels, str]:
    """Return the kernel set and the interpreter that "KERNELS@PYTHON" names.

    Raises:
        UserError: there is no such kernel set, or no such interpreter.

    """
    kernels, _, python = member.partition(SEPARATOR)
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
        UserError: see `split_member` and `open_tflite`.
        InfrastructureError: no worker process can be started there.

    """
    kernels, python = split_member(member)
    with TemporaryDirectory(prefix="edgeflare-") as folder:
        packages = Path(folder) / "packages"
        link_packages(packages)
        launcher = ("env", "-u", "PYTHONHOME", f"PYTHONPATH={packages}", python)
        with closing(open_tflite(path, kernels, invocation, launcher=launcher)) as model:
            yield model
