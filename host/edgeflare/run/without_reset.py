"""What an app gets that never resets the variables of its model: figures of the twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from edgeflare.errors import UserError
from edgeflare.record.json_types import Count, CountFromOne

WITHOUT_RESET_KEY = "without_reset"
"""The key of `about` under which the journal keeps it."""

_WithOrWithout = Annotated[str, msgspec.Meta(pattern=r"^(with|without)(?!\n)$")]

_Right = Annotated[Mapping[_WithOrWithout, Count], msgspec.Meta(min_length=2)]


class WithoutReset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the twin decides on the first seeds, in their order, where nothing is reset between them.

    Attributes:
        images: how many of the first seeds.
        changed: those on which it decides otherwise than with a reset before each.
        labelled: those of which is known what is right.
        right: number of labelled seeds that it decides so with and without a reset; absent where
            none is known.

    """

    images: CountFromOne
    changed: Count
    labelled: Count
    right: _Right | None = None

    def in_words(self, noun: str = "seeds") -> str:
        """Return this as a line, in which the inputs are called by a noun."""
        line = f"the twin decides otherwise on {self.changed:,} of the first {self.images:,} {noun}"
        if not self.right:
            return line
        shares = (f"{self.right[key] / self.labelled:.1%} {key}" for key in ("with", "without"))
        return f"{line}; right on them: {', '.join(shares)}"


def noted_without_reset(about: Mapping[str, object]) -> WithoutReset | None:
    """Return what a journal notes of it; None where the models have no variables."""
    noted = about.get(WITHOUT_RESET_KEY)
    try:
        return None if noted is None else msgspec.convert(noted, WithoutReset)
    except msgspec.ValidationError as error:
        raise UserError(
            "the run's journal run.db is damaged (what it says of variables without a reset:"
            f" {error}): start anew with --overwrite"
        ) from None
