"""The inputs of an inspection that are kept, each in one of two halves.

Rows are kept as they came, in float32 and at most so many of them, and no histograms or moments: an
AUC, a permutation and an L1 regression need the inputs one by one, and with rows they are exact.
It loses nothing. 2,048 inputs in a half bound the interval of any correlation by .043 and that of
an AUC by .025, which is below the default precision; so an inspection that has as many ends there,
since each further input would cost two inferences and a gradient, and could tell no more.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.diagnose.inspect.behaviour_block import (
    CHOOSING,
    ERROR_GRADIENT,
    HELD_OUT,
    BehaviourBlock,
)

MOST_INPUTS: Final = 4096
MOST_BYTES_KEPT: Final = 96 * 2**20
"""Bytes of all behaviours together; 1,184 units and three behaviours take 58 MB of them. What is
computed at the end takes about as much again."""


class KeptInputs:
    """Rows of inputs, up to a bound, and the half of each.

    Attributes:
        count: number of inputs kept.
        most: number that may be kept.

    """

    def __init__(self, first: BehaviourBlock) -> None:
        """Make room.

        Args:
            first: a block with the behaviours, units and hypotheses of all; nothing is kept of it.

        """
        row_bytes = sum(4 * values.shape[1] for values in first.values.values())
        self.most = min(MOST_INPUTS, MOST_BYTES_KEPT // max(row_bytes, 1))
        self.count = 0
        self._values = {
            name: np.empty((self.most, values.shape[1]), np.float32)
            for name, values in first.values.items()
        }  # memory of rows that are not reached is never touched, and not taken
        self._hypotheses = np.empty((self.most, first.hypotheses.shape[1]))
        self._errors = np.empty(self.most)
        self._groups = np.empty(self.most, np.int64)
        self._strata = np.empty(self.most, np.int64)
        self._halves = np.empty(self.most, np.int8)

    def add(self, block: BehaviourBlock) -> None:
        """Keep a block, which may have as many inputs as there is still room for.

        Raises:
            ValueError: its arrays are not of the shapes that they should have, or not finite.

        """
        _check(
            block, {name: rows.shape[1] for name, rows in self._values.items()}, self._hypotheses
        )
        rows = slice(self.count, self.count + len(block))
        for name, values in block.values.items():
            self._values[name][rows] = values
        self._hypotheses[rows] = block.hypotheses
        self._errors[rows] = block.margin_errors
        self._groups[rows] = block.groups
        self._strata[rows] = block.strata
        self._halves[rows] = block.halves
        self.count = rows.stop

    def half(self, which: int) -> BehaviourBlock:
        """Return the inputs of one half, without behaviours."""
        rows = self._rows(which)
        return BehaviourBlock(
            {}, self._hypotheses[rows], self._errors[rows],
            self._groups[rows], self._halves[rows], self._strata[rows],
        )  # fmt: skip

    def values(self, behaviour: str, which: int) -> NDArray[np.float32]:
        """Return (inputs of the half, units), what units did on one half; a copy."""
        return self._values[behaviour][self._rows(which)]

    @property
    def behaviours(self) -> tuple[str, ...]:
        """Names of the behaviours, in the order of the first block."""
        return tuple(self._values)

    def _rows(self, which: int) -> NDArray[np.intp]:
        return np.flatnonzero(self._halves[: self.count] == which)


def _check(block: BehaviourBlock, units: dict[str, int], kept: NDArray[np.float64]) -> None:
    if units.keys() != block.values.keys():
        raise ValueError(f"a block has the behaviours {list(block.values)}, others {list(units)}")
    expected = {name: (len(block), count) for name, count in units.items()}
    found = {name: values.shape for name, values in block.values.items()}
    if not np.isin(block.halves, (CHOOSING, HELD_OUT)).all():
        raise ValueError("a block has inputs of no half")
    if found != expected or block.hypotheses.shape != (len(block), kept.shape[1]):
        raise ValueError(f"a block of {len(block)} inputs has values {found}, not {expected}")
    numbers = all(np.isfinite(values).all() for values in block.values.values())
    if ERROR_GRADIENT in units:
        numbers &= bool(np.isfinite(block.margin_errors).all())
    if not (numbers and np.isfinite(block.hypotheses).all()):
        raise ValueError("a block has values that are not finite")
