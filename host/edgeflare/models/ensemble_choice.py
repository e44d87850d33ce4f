"""The members of the twin's ensemble, as a user names them."""

from __future__ import annotations

from typing import cast, get_args

from edgeflare.errors import UserError
from edgeflare.models.kernels import Kernels
from edgeflare.models.other_runtime import SEPARATOR, split_member
from edgeflare.suggestion import suggestion


def read_ensemble(text: str | None) -> tuple[tuple[Kernels, ...], tuple[str, ...]]:
    """Return the kernel sets of an ensemble, and its members of other runtimes.

    Both are empty where the default is wanted.

    Raises:
        UserError: one is unknown, or named twice, or the first is of another runtime.

    """
    if text is None:
        return (), ()
    names = [name.strip() for name in text.split(",")]
    elsewhere = [name for name in names if SEPARATOR in name]
    here = [name for name in names if SEPARATOR not in name]
    known = get_args(Kernels)
    for name in here:
        if name not in known:
            raise UserError(
                f"--ensemble: there is no kernel set {name!r}{suggestion(name, known)}; "
                f"known are {', '.join(known)}"
            )
    if names[0] in elsewhere:
        raise UserError(
            f"--ensemble {text}: the first is the twin's own, on this Python's runtime: put"
            f" {' or '.join(known)} before {names[0]}"
        )
    for name in elsewhere:
        split_member(name)
    if len(set(names)) < len(names):
        raise UserError(f"--ensemble {text}: name each kernel set once")
    return cast("tuple[Kernels, ...]", tuple(here)), tuple(elsewhere)
