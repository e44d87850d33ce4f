"""The cells that are tested, an operator and a type each, and valid models of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.parameter import Configuration, OperatorParameter, Setting
from edgeflare.errors import UserError, suggestion

Cell = tuple[str, str]
"""An operator and a type."""

_MOST_DRAWS = 40
"""How often settings are drawn until they are valid. More than half of all draws are."""

LARGEST_SEED = 2**32
"""Exclusive upper bound of seeds for the values of constants."""


def chosen_cells(operators: Sequence[str] = (), types: Sequence[str] = ()) -> tuple[Cell, ...]:
    """Return the cells of some operators and types, in the order of the operators' names.

    Args:
        operators: their names in the schema; none for all.
        types: likewise.

    Raises:
        UserError: an operator or type is not known, or exists in none of the others.

    """
    known = known_operators()
    every = sorted({type_ for specification in known.values() for type_ in specification.types})
    for wanted, names, what in ((operators, known, "operator"), (types, every, "type")):
        for name in wanted:
            if name not in names:
                like = suggestion(name, names)
                raise UserError(
                    f"there is no {what} {name}{like}; `edgeflare conform --list` shows those there"
                    " are"
                )
    cells = tuple(
        (name, type_)
        for name, specification in known.items()
        for type_ in specification.types
        if (not operators or name in operators) and (not types or type_ in types)
    )
    for name in operators:
        if not any(name == cell[0] for cell in cells):
            raise UserError(
                f"{name} does not exist in {', '.join(types)}; it has the types "
                f"{', '.join(known[name].types)}"
            )
    for type_ in types:
        if not any(type_ == cell[1] for cell in cells):
            raise UserError(
                f"none of {', '.join(operators)} exists in {type_}; `edgeflare conform --list` "
                "shows what there is"
            )
    return cells


@cache
def cell_parameters(cell: Cell) -> tuple[OperatorParameter, ...]:
    """Return the parameters of a cell."""
    operator, type_ = cell
    return known_operators()[operator].parameters(type_)


def cell_buckets(cell: Cell, configuration: Configuration) -> Iterator[tuple[str, str]]:
    """Yield parameters and their buckets; none for settings beyond what is ever drawn."""
    for parameter in cell_parameters(cell):
        try:
            yield parameter.name, parameter.bucket(configuration[parameter.name])
        except (ValueError, TypeError, KeyError):
            # Models that users bring have settings that nothing else has.
            continue


def drawn_configuration(cell: Cell, rng: np.random.Generator) -> Configuration | None:
    """Return a valid configuration at random, or None if there seems to be none."""
    operator, type_ = cell
    specification = known_operators()[operator]
    for _ in range(_MOST_DRAWS):
        configuration = specification.draw(type_, rng)
        if specification.invalid(type_, configuration) is None:
            return configuration
    return None


def with_setting(
    cell: Cell, configuration: Configuration, name: str, setting: Setting
) -> Configuration | None:
    """Return a configuration with another setting, and what follows it; None if it has a fault."""
    operator, type_ = cell
    specification = known_operators()[operator]
    parameter = next(
        cell_parameter for cell_parameter in cell_parameters(cell) if cell_parameter.name == name
    )
    if parameter.fault(setting) is not None:
        return None
    changed = specification.adapted(type_, {**configuration, name: setting}, name)
    return changed if specification.invalid(type_, changed) is None else None


def drawn_seed(rng: np.random.Generator) -> int:
    """Return a seed for the values of a node's constants."""
    return int(rng.integers(LARGEST_SEED))
