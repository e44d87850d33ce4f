"""Least models that show known issues: of one operator, and of several that are wrong together.

They are settings, of which nothing is executed, and bounded before anything is built of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np

from edgeflare.conform.drafts.cells import cell_parameters
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.specification.parameter import Configuration
from edgeflare.errors import UserError, suggestion

_MOST_SETTINGS: Final = 64
_MOST_VALUES: Final = 2**16
_MOST_OPERATORS: Final = 16
"""Bounds of a probe's settings, of the values of its largest tensor, and of its operators."""

_MOST_PRODUCT: Final = 2**22
"""Bound of the product of a probe's sizes, above which its constants are not even built. Sizes that
a model does not multiply, such as strides, are in it."""

_TOO_LARGE: Final = f"probe: its model is larger than {_MOST_VALUES:,} values: shrink it"

RESULT: Final = re.compile(r"(\d{1,2})(?:\.(\d))?")
"""A result of an operator: "0" is the first of the first one, "0.1" its second."""


def _require_times(times: int) -> None:
    if not 1 <= times <= 10:
        raise UserError(f"times is {times}: write 1 to 10")


@dataclass(frozen=True, slots=True)
class IssueProbe:
    """A least model of one operator that shows an issue, as `edgeflare conform` builds it.

    Attributes:
        type: the operator's type.
        settings: a setting for each parameter.
        constants: seed of the values of its constants and operands.
        times: how often it is tried at most: a kernel that reads memory which nothing wrote does
            not fail each time.

    """

    type: str
    settings: Mapping[str, Any]
    constants: int = 0
    times: int = 1

    def __post_init__(self) -> None:
        """Refuse what is out of bounds."""
        if not 0 <= self.constants < 2**32:
            raise UserError(f"constants is {self.constants}: write a whole number below 2^32")
        _require_times(self.times)
        if len(self.settings) > _MOST_SETTINGS:
            raise UserError(f"settings are {len(self.settings)}, more than {_MOST_SETTINGS}")

    @property
    def configuration(self) -> Configuration:
        """The settings as operators take them."""
        return {
            name: tuple(setting) if isinstance(setting, list) else setting
            for name, setting in self.settings.items()
        }

    def require_valid(self, operator: str) -> None:
        """Refuse settings that are no small valid model of an operator."""
        specification, settings = known_operators()[operator], self.configuration
        self._require_bounded(specification)
        try:
            wrong = specification.invalid(self.type, settings)
        except (TypeError, ValueError, IndexError) as error:  # settings of another kind
            wrong = str(error)
        if wrong is not None:
            raise UserError(
                f"probe: {wrong}: `edgeflare conform --list --ops {operator}` shows all"
            )
        graph = specification.build(self.type, settings, np.random.default_rng(self.constants))
        if any(prod(value.shape) > _MOST_VALUES for value in graph.values):
            raise UserError(_TOO_LARGE)

    def _require_bounded(self, specification: OperatorSpecification) -> None:
        """Refuse settings of which no model may be built: what is no number, and what is huge."""
        known = specification.parameters(self.type) if self.type in specification.types else ()
        scales = {parameter.name for parameter in known if parameter.kind == "quantization"}
        numbers = 1
        for name, setting in self.configuration.items():
            several = setting if isinstance(setting, tuple) else ()
            for number in several:
                if not isinstance(number, int):
                    raise UserError(f"probe: {name} has {number!r}: write whole numbers")
            single = (setting,) if isinstance(setting, int) and name not in scales else ()
            numbers *= prod(max(1, abs(number)) for number in (*several, *single))
        if numbers > _MOST_PRODUCT:
            raise UserError(_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class ProbedOperator:
    """An operator of several that are wrong together.

    Attributes:
        operator: name in the schema.
        type: the operator's type.
        settings: a setting for each parameter that is not as plain as can be; what follows from
            the tensors that it reads is left out.
        reads: what its operands are, those that are left out being given: "0" is the first result
            of the first operator, "0.1" the second; any other name is a tensor that is given, the
            same wherever it stands.
        constants: seed of the values of its constants.

    """

    operator: str
    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    constants: int = 0

    def __post_init__(self) -> None:
        """Refuse what is out of bounds, and an operator or type that is not known."""
        known = known_operators()
        if self.operator not in known or self.type not in known[self.operator].types:
            raise UserError(
                f"{self.operator} {self.type} is not known{suggestion(self.operator, known)}:"
                " `edgeflare conform --list` shows all"
            )
        self.probe.require_valid(self.operator)

    @property
    def probe(self) -> IssueProbe:
        """The operator by itself, with all its settings."""
        plain = {each.name: each.simplest for each in cell_parameters((self.operator, self.type))}
        return IssueProbe(self.type, {**plain, **self.settings}, self.constants)


@dataclass(frozen=True, slots=True)
class GraphProbe:
    """Operators that are right alone and wrong together.

    Attributes:
        operators: the operators, in the order in which they run.
        outputs: what they answer, written as `ProbedOperator.reads`.
        times: how often they are tried at most.

    """

    operators: tuple[ProbedOperator, ...]
    outputs: tuple[str, ...]
    times: int = 1

    def __post_init__(self) -> None:
        """Refuse what is out of bounds, and results that are not there when they are read."""
        _require_times(self.times)
        if not 1 <= len(self.operators) <= _MOST_OPERATORS or not self.outputs:
            raise UserError(f"write 1 to {_MOST_OPERATORS} operators, and outputs")
        reads = [(at, name) for at, each in enumerate(self.operators) for name in each.reads]
        for before, name in (*reads, *((len(self.operators), name) for name in self.outputs)):
            found = RESULT.fullmatch(name)
            if found is not None and int(found[1]) >= before:
                raise UserError(f"{name!r} is no result of an operator before")
