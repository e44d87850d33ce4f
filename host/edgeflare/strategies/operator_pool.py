"""The operator pool: which mutation operators a run draws from, and how one is applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from edgeflare.core.input_space import Input
from edgeflare.errors import UserError
from edgeflare_operators import (
    MutationOperator,
    OperatorError,
    built_in_operators,
    domains,
    operators,
)

BUILT_IN = "built-in"
"""Stands for EdgeFlare's own operators, and is the pool of a run unless told otherwise: so what
else is installed changes no result."""

ALL = "all"
"""Stands for all operators that are installed."""


def pool_names(domain: str, chosen: Iterable[str] = (BUILT_IN,)) -> tuple[str, ...]:
    """Return the names of the operators that were chosen, each once, in the order of the names.

    Args:
        domain: name of the domain of the inputs.
        chosen: names of the domain's operators, `BUILT_IN` or `ALL`.

    """
    pool: set[str] = set()
    for name in chosen:
        if name == BUILT_IN:
            named = built_in_pool(domain)
        else:
            named = domain_operators(domain, None if name == ALL else (name,))
        pool.update(operator.name for operator in named)
    return tuple(sorted(pool))


def domain_operators(domain: str, names: Sequence[str] | None) -> tuple[MutationOperator, ...]:
    """Return the operators of a domain of these names, in that order, or all that are installed."""
    try:
        return operators(domain, names)
    except OperatorError as error:
        raise UserError(str(error)) from error


def built_in_pool(domain: str) -> tuple[MutationOperator, ...]:
    """Return the built-in operators of a domain, in the order of their names.

    Raises:
        UserError: they are not registered, since edgeflare is not installed.

    """
    try:
        return built_in_operators(domain)
    except OperatorError as error:
        raise UserError(str(error)) from error


def all_operators() -> tuple[MutationOperator, ...]:
    """Return all operators that are installed, in the order of their domains and names.

    Raises:
        UserError: an installed package's operators do not load, or the built-in ones are not there.

    """
    try:
        return tuple(operator for domain in domains() for operator in operators(domain))
    except OperatorError as error:
        raise UserError(str(error)) from error


def mutated(operator: MutationOperator, candidate: Input, rng: np.random.Generator) -> Input:
    """Return a mutant of an input."""
    try:
        return operator(candidate, rng)
    except OperatorError as error:
        raise UserError(str(error)) from error
