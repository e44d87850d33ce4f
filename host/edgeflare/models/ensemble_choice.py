"""The members of the twin's ensemble, as a user names them."""

from __future__ import annotations

from edgeflare.errors import UserError
from edgeflare.models.dequantized_model import DEQUANTIZED
from edgeflare.models.other_runtime import SEPARATOR, split_member
from edgeflare.suggestion import suggestion
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS, Kernels, is_tflite_kernel_set


def read_ensemble(text: str | None) -> tuple[tuple[Kernels, ...], tuple[str, ...]]:
    """Return the kernel sets of an ensemble, and its members that are none of the host's.

    Both are empty where the default is wanted.

    Raises:
        UserError: one is unknown, or named twice, or the first is no kernel set.

    """
    if text is None:
        return (), ()
    names = [name.strip() for name in text.split(",")]
    elsewhere = [name for name in names if SEPARATOR in name or name == DEQUANTIZED]
    here: list[Kernels] = []
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
            split_member(name)
    if len(set(names)) < len(names):
        raise UserError(f"--ensemble {text}: name each kernel set once")
    return tuple(here), tuple(elsewhere)
