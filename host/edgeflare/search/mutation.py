"""Applying a mutation operator, and saying whose fault it is where one breaks its promise."""

from __future__ import annotations

import numpy as np

from edgeflare.core.answer import Image
from edgeflare.errors import UserError
from edgeflare_operators import MutationOperator, OperatorError


def mutated(operator: MutationOperator, image: Image, rng: np.random.Generator) -> Image:
    """Return a mutant of an image.

    Raises:
        UserError: an operator of the user's breaks its promise.

    """
    try:
        return operator(image, rng)
    except OperatorError as error:
        raise UserError(str(error)) from error
