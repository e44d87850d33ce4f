"""Applying a mutation operator, and saying whose fault it is where one breaks its promise."""

from __future__ import annotations

import numpy as np

from edgeflare.core.input_space import Input
from edgeflare.errors import UserError
from edgeflare_operators import MutationOperator, OperatorError


def mutated(operator: MutationOperator, candidate: Input, rng: np.random.Generator) -> Input:
    """Return a mutant of an input.

    Raises:
        UserError: an operator of the user's breaks its promise.

    """
    try:
        return operator(candidate, rng)
    except OperatorError as error:
        raise UserError(str(error)) from error
