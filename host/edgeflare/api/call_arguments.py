"""Arguments of calls from Python: their ranges, names of devices, and whether progress is shown.

pytest loads this file in every session, so it imports the rest where that is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf, isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from edgeflare.errors import UserError

if TYPE_CHECKING:
    from edgeflare.progress import ProgressDisplay


def require_within(
    name: str, value: float | None, least: float, most: float = inf, *, whole: bool = False
) -> None:
    """Refuse an argument that is not within its range; None is no bound."""
    __tracebackhide__ = True

    kinds = int if whole else (int, float)
    if value is None or (isinstance(value, kinds) and isfinite(value) and least <= value <= most):
        return
    number = "a whole number" if whole else "a number"
    bounds = f"of {least:g} or more" if most == inf else f"from {least:g} to {most:g}"
    raise UserError(f"{name}={value!r}: expected {number} {bounds}")


def require_one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse an argument that is none of its values."""
    __tracebackhide__ = True

    if value not in choices:
        raise UserError(f"{name}={value!r}: expected one of {', '.join(choices)}")


def path_of(value: str | PathLike[str] | None) -> Path | None:
    """Return a path; None for none."""
    return None if value is None else Path(value)


def device_names(device: str | Sequence[str]) -> list[str]:
    """Return the names of one device or several."""
    return [device] if isinstance(device, str) else list(device)


@contextmanager
def shown_progress(shown: bool) -> Iterator[ProgressDisplay]:
    """Show progress on standard error, as commands do, for as long as the context lasts.

    Args:
        shown: whether anything is shown.

    """
    from rich.console import Console  # noqa: PLC0415

    from edgeflare.progress import observe  # noqa: PLC0415

    # Jupyter would show each line as a thing of its own; on standard error they are one block.
    console = Console(stderr=True, quiet=not shown, force_jupyter=False)
    with observe(console) as display:
        yield display
