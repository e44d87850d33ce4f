"""Input mutation operators: pure functions of an input and a random generator, by domain.

An operator of your own is one decorated function:

    from edgeflare_operators import operator

    @operator("invert")
    def invert(image, rng):
        return 255 - image

A package that names it under the entry point group `edgeflare.operators` makes it known. A search
draws from it when it is named with `--operators`.
"""

from edgeflare_operators.operator_registry import (
    MutationOperator,
    OperatorError,
    built_in_operators,
    domains,
    operator,
    operators,
)

__all__ = [
    "MutationOperator",
    "OperatorError",
    "built_in_operators",
    "domains",
    "operator",
    "operators",
]
