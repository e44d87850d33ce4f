"""All operators that move data."""

from __future__ import annotations

from edgeflare.conform.operators.movement.block_moves import BLOCK_MOVES
from edgeflare.conform.operators.movement.cuts import CUTS
from edgeflare.conform.operators.movement.joins import JOINS
from edgeflare.conform.operators.movement.lookups import LOOKUPS
from edgeflare.conform.operators.movement.pads import PADS
from edgeflare.conform.operators.movement.repeats import REPEATS
from edgeflare.conform.operators.movement.reshapes import RESHAPES
from edgeflare.conform.operators.movement.reversals import REVERSALS

MOVEMENT_OPERATORS = (
    *RESHAPES,
    *JOINS,
    *REPEATS,
    *CUTS,
    *PADS,
    *LOOKUPS,
    *BLOCK_MOVES,
    *REVERSALS,
)
