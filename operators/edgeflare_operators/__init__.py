"""Input mutation operators: pure functions of an input and a random generator, by domain.

An operator of your own is one decorated function:

    from edgeflare_operators import operator

    @operator("invert")
    def invert(image, rng):
        return 255 - image

A package that names it under the entry point group `edgeflare.operators` makes it known to every
search that draws from all operators.
"""

from edgeflare_operators.operator_registry import (
    MutationOperator,
    OperatorError,
    operator,
    operators,
)

__all__ = ["MutationOperator", "OperatorError", "operator", "operators"]
