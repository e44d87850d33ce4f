"""Which ids of a vocabulary may take each other's place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare_operators.operator_registry import Sample

Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class TokenSets:
    """Sets of ids that may take each other's place.

    Attributes:
        sets: each is (ids,), in ascending order; an id may be in several. Ids in no set stay where
            they are, save that others may be put in or left out before them.
        padding: the id behind the last token; None for none.

    """

    sets: tuple[Ids, ...]
    padding: int | None = None

    @classmethod
    def of_input(cls, tokens: Sample) -> TokenSets:
        """Return one set of all ids of an input."""
        return cls((np.unique(tokens).astype(np.int32),))

    def movable(self, tokens: Sample) -> NDArray[np.intp]:
        """Return the positions whose ids are in a set: (positions,)."""
        inside = np.zeros(tokens.shape, np.bool_)
        for ids in self.sets:
            inside |= np.isin(tokens, ids)
        return np.flatnonzero(inside)

    def drawn_like(self, token: int, rng: np.random.Generator) -> int:
        """Return an id that may take the place of another: a different one, where there is one."""
        holding = [ids for ids in self.sets if token in ids]
        ids = holding[int(rng.integers(len(holding)))]
        others = ids[ids != token]
        return int(rng.choice(others)) if len(others) else token
