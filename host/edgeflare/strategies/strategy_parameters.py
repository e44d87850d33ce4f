"""The parameters of a strategy: the fields of its frozen dataclass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, cast, get_type_hints

from edgeflare.errors import UserError, suggestion
from edgeflare.record.json_file import MOST

Value = bool | int | float | str
"""What a parameter may be."""

V = TypeVar("V", bool, int, float, str)

_KEY = "edgeflare.parameter"
"""Key under which the metadata of a dataclass's field say what the parameter is."""

_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a strategy.

    Attributes:
        name: the name of the dataclass's field.
        type: bool, int, float or str.
        default: value unless another is set.
        description: meaning, unit, and the reason of its default.
        at_least: the least value; None for no bound.
        above: a value that it must exceed; None for no bound.
        at_most: the largest value; None for no bound.

    """

    name: str
    type: type
    default: Value
    description: str
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None

    @property
    def expected(self) -> str:
        """The values that it may have, such as "a whole number, at least 1"."""
        bounds = {"at least": self.at_least, "above": self.above, "at most": self.at_most}
        said = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        return ", ".join([_KINDS[self.type], *said])

    def read(self, text: str) -> Value:
        """Return the value that a text means."""
        value: Value
        try:
            value = {"true": True, "false": False}[text] if self.type is bool else self.type(text)
        except (KeyError, ValueError):
            raise self._wrong(text) from None
        return self.check(value)

    def check(self, value: object) -> Value:
        """Return the value, a whole number as a float where a float is expected."""
        if self.type is float and type(value) is int:
            value = float(value)
        if type(value) is not self.type or not self._is_within_bounds(value):
            raise self._wrong(value)
        if self.type is int and abs(value) > MOST:  # type: ignore[arg-type]  # it is an int
            raise UserError(
                f"parameter {self.name}={value}: expected a whole number of at most {MOST}, which"
                " every reader of JSON keeps"
            )
        return value  # type: ignore[return-value]  # one of the types of `Value`, as checked

    def _is_within_bounds(self, value: Any) -> bool:
        return not (
            (isinstance(value, float) and not math.isfinite(value))
            or (self.at_least is not None and value < self.at_least)
            or (self.above is not None and value <= self.above)
            or (self.at_most is not None and value > self.at_most)
        )

    def _wrong(self, value: object) -> UserError:
        return UserError(f"parameter {self.name}={value}: expected {self.expected}")


def parameter(
    default: V,
    description: str,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> V:
    """Return the dataclass field of a parameter.

    Args:
        default: value unless another is set.
        description: meaning, unit, and the reason of its default.
        at_least: the least value.
        above: a value that it must exceed.
        at_most: the largest value.

    """
    metadata = {
        "description": description,
        "at_least": at_least,
        "above": above,
        "at_most": at_most,
    }
    made: V = field(default=default, metadata={_KEY: metadata})
    return made


def parameters_of(strategy: type) -> tuple[Parameter, ...]:
    """Return the parameters of a strategy's class, in the order of its fields.

    Raises:
        UserError: a field has no default, or is of a type that no parameter can have.

    """
    if not is_dataclass(strategy):
        return ()
    types = get_type_hints(strategy)
    for known in fields(strategy):
        if types[known.name] not in _KINDS or known.default is MISSING:
            raise UserError(
                f"parameter {known.name} has to be a bool, int, float or str, and to have a default"
            )
    return tuple(
        Parameter(
            known.name,
            types[known.name],
            cast("Value", known.default),
            **{"description": "", **known.metadata.get(_KEY, {})},
        )
        for known in fields(strategy)
    )


def check_parameters(strategy: object) -> None:
    """Check each parameter of a strategy."""
    for known in parameters_of(type(strategy)):
        object.__setattr__(strategy, known.name, known.check(getattr(strategy, known.name)))


def known_parameter(name: str, strategy: str, parameters: Sequence[Parameter]) -> Parameter:
    """Return the parameter of that name.

    Raises:
        UserError: the strategy has none of that name.

    """
    known = {each.name: each for each in parameters}
    if name not in known:
        raise UserError(
            f"strategy {strategy} has no parameter '{name}'{suggestion(name, known)}:"
            f" `edgeflare strategies {strategy}` lists what it has"
        )
    return known[name]


def read_assignments(
    assignments: Sequence[str], strategy: str, parameters: Sequence[Parameter]
) -> Mapping[str, Value]:
    """Return the values that a user sets, by name.

    Args:
        assignments: "NAME=VALUE" each.
        strategy: the strategy's name.
        parameters: the strategy's parameters.

    Raises:
        UserError: one is not of that form, unknown, set twice, or not as the parameter has to be.

    """
    values: dict[str, Value] = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise UserError(
                f"--set {assignment}: expected NAME=VALUE; `edgeflare strategies {strategy}` lists"
                " the names"
            )
        chosen = known_parameter(name, strategy, parameters)
        if name in values:
            raise UserError(f"--set {assignment}: {name} is set twice; set it once")
        values[name] = chosen.read(text)
    return values
