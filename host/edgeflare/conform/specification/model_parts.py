"""The parts of a model of one operator, and which parameter stands where in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Values
from edgeflare.conform.specification.activation_tensors import (
    DTYPES,
    Operands,
    Options,
    Results,
    UnknownOperatorForm,
    quantization_parameters,
    quantization_settings,
)
from edgeflare.conform.specification.parameter import Choice, OperatorParameter, Setting
from edgeflare.conform.specification.whole_numbers import whole_numbers

RESULT = -1
"""Stands for the first result in the place of an operand."""


@dataclass(slots=True)
class ModelParts:
    """What an operator reads, and its options, while a model is built or read.

    Attributes:
        data: dtype and quantization of the operand that says the type, while a model is built.
        options: options of the operator, by name.
        tensors: tensors that it reads, by their place; those that are left out are not there.
        results: the tensors that it writes, while a model is read.
        left_out: how many operands after these are named as left out, while a model is built.

    """

    data: GraphValue
    options: dict[str, Option] = field(default_factory=dict)
    tensors: dict[int, GraphValue] = field(default_factory=dict)
    results: Results = ()
    left_out: int = 0

    @classmethod
    def of(
        cls, options: Options, operands: Sequence[GraphValue | None], results: Results
    ) -> ModelParts:
        """Return the parts of a model that is read."""
        tensors = {at: operand for at, operand in enumerate(operands) if operand is not None}
        return cls(GraphValue("", ()), dict(options), tensors, results)

    @classmethod
    def known(cls, options: Options, operands: Operands, results: Results) -> ModelParts:
        """Return the parts of a model whose operands are all known, as if they were constants."""
        tensors = [
            None if operand is None else replace(operand.value, values=operand.raw)
            for operand in operands
        ]
        return cls.of(options, tensors, results)

    def tensor(self, at: int) -> GraphValue:
        """Return an operand, or the first result; UnknownOperatorForm if it is left out."""
        if at == RESULT:
            return self.results[0]
        if at not in self.tensors:
            raise UnknownOperatorForm(f"it has no operand {at}")
        return self.tensors[at]

    def constant(self, at: int) -> Values:
        """Return the values of a constant; UnknownOperatorForm if it is none."""
        values = self.tensors[at].values if at in self.tensors else None
        if values is None:
            raise UnknownOperatorForm(f"its operand {at} is no constant")
        return values


class Place(ABC):
    """Where a parameter stands in a model.

    Attributes:
        parameter: the parameter that stands here.

    """

    def __init__(self, parameter: OperatorParameter) -> None:
        self.parameter = parameter

    @abstractmethod
    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""

    @abstractmethod
    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model; UnknownOperatorForm if it has none."""

    def chosen(self, found: Setting) -> Setting:
        """Return what was read; UnknownOperatorForm if it is none of a few known settings."""
        if isinstance(self.parameter, Choice) and (why := self.parameter.fault(found)) is not None:
            raise UnknownOperatorForm(why)
        return found


class ShapeOf(Place):
    """The shape of a tensor that is given."""

    def __init__(self, parameter: OperatorParameter, operand: int = 0, dtype: str = "") -> None:
        """Declare a place.

        Args:
            parameter: the parameter that stands there.
            operand: the tensor.
            dtype: dtype of the tensor; empty for that of the operand that says the type.

        """
        super().__init__(parameter)
        self.operand, self.dtype = operand, dtype

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        shape = whole_numbers(setting)
        given = GraphValue(self.dtype, shape) if self.dtype else replace(parts.data, shape=shape)
        parts.tensors[self.operand] = given

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return parts.tensor(self.operand).shape


class SizeOf(Place):
    """One dimension of a tensor that is given."""

    def __init__(
        self, parameter: OperatorParameter, dimension: int, rank: int, operand: int = 0
    ) -> None:
        """Declare a place in the shape of an operand that has so many dimensions."""
        super().__init__(parameter)
        self.dimension, self.rank, self.operand = dimension, rank, operand

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        given = parts.tensors.get(self.operand, replace(parts.data, shape=(1,) * self.rank))
        shape = list(given.shape)
        shape[self.dimension] = int(str(setting))
        parts.tensors[self.operand] = replace(given, shape=tuple(shape))

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        shape = parts.tensor(self.operand).shape
        if len(shape) != self.rank:
            raise UnknownOperatorForm(f"its operand {self.operand} has {len(shape)} dimensions")
        return shape[self.dimension]


class OptionOf(Place):
    """An option."""

    def __init__(
        self, parameter: OperatorParameter, name: str, default: Option | None = None
    ) -> None:
        """Declare a place.

        Args:
            parameter: the parameter that stands there.
            name: name of the option in the schema.
            default: what it is in a model that leaves it out; None where none may.

        """
        super().__init__(parameter)
        self.name, self.default = name, default

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        parts.options[self.name] = setting

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        found = parts.options.get(self.name, self.default)
        if found is None:
            raise UnknownOperatorForm(f"it has no option {self.name}")
        return self.chosen(found)


ASYMMETRIC_INPUTS = OptionOf(
    Choice("asymmetric_inputs", (False, True)), "asymmetricQuantizeInputs", default=False
)
"""Whether kernels round float inputs to eight bits with a zero point."""


class CountOf(Place):
    """How many tensors of one shape are read; declared after the shape."""

    def __init__(self, parameter: OperatorParameter, option: str = "") -> None:
        """Declare a place; `option` is the one that has the count as well, empty for none."""
        super().__init__(parameter)
        self.option = option

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        if self.option:
            parts.options[self.option] = setting
        parts.tensors.update(dict.fromkeys(range(int(str(setting))), parts.tensors[0]))

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return len(parts.tensors)


class ReadFrom(Place):
    """What is written with other parts of a model, and read from them.

    Such as the dtypes and quantization that tensors have from their beginning.
    """

    def __init__(
        self, parameter: OperatorParameter, reading: Callable[[ModelParts], Setting]
    ) -> None:
        """Declare how a parameter is read."""
        super().__init__(parameter)
        self._reading = reading

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write nothing: the operator's specification does, in `form`, `parts` or `complete`."""

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return self.chosen(self._reading(parts))


def quantization_places(type_: str, **tensors: int) -> Iterator[Place]:
    """Yield the places of scales and zero points, which tensors have from their beginning.

    Args:
        type_: the operator's type; there are none if its tensors are not quantized.
        tensors: their places among the operands, or `RESULT`, by what they are called.

    """

    def place(parameter: OperatorParameter, role: str, at: int) -> Place:
        def reading(parts: ModelParts) -> Setting:
            tensor = parts.tensor(at)
            if tensor.dtype != DTYPES[type_]:
                raise UnknownOperatorForm(f"its {role} is of {tensor.dtype}, not {DTYPES[type_]}")
            return quantization_settings(tensor, role)[parameter.name]

        return ReadFrom(parameter, reading)

    for role, at in tensors.items():
        yield from (
            place(quantization_parameter, role, at)
            for quantization_parameter in quantization_parameters(type_, role)
        )


class ConstantOf(Place):
    """Whole numbers of a constant: a scalar for one number, a vector for several."""

    def __init__(self, parameter: OperatorParameter, operand: int = 1) -> None:
        """Declare a place in a constant operand."""
        super().__init__(parameter)
        self.operand = operand

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        parts.tensors[self.operand] = whole_constant(np.asarray(setting, np.int32))

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        values = parts.constant(self.operand)
        if isinstance(self.parameter.simplest, int):
            if values.size != 1:
                raise UnknownOperatorForm(f"its operand {self.operand} is no single number")
            return int(values.reshape(-1)[0])
        return tuple(int(number) for number in values.reshape(-1))


class ItemOf(ConstantOf):
    """One of several whole numbers of a constant."""

    def __init__(self, parameter: OperatorParameter, at: int, count: int, operand: int = 1) -> None:
        """Declare a place in a constant operand of so many numbers."""
        super().__init__(parameter, operand)
        self.at, self.count = at, count

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model; the numbers in their order."""
        before = parts.constant(self.operand) if self.at else np.zeros(0, np.int32)
        numbers = np.append(before, np.asarray(setting, np.int32))
        parts.tensors[self.operand] = whole_constant(numbers)

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        values = parts.constant(self.operand)
        if values.size != self.count:
            raise UnknownOperatorForm(f"its operand {self.operand} has not {self.count} numbers")
        return int(values.reshape(-1)[self.at])


class ColumnOf(ConstantOf):
    """A column of a constant of two, such as what is padded before each dimension, and after."""

    def __init__(self, parameter: OperatorParameter, column: int, operand: int = 1) -> None:
        """Declare a place in a constant operand."""
        super().__init__(parameter, operand)
        self.column = column

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model; the columns in their order."""
        numbers = np.asarray(setting, np.int32).reshape(-1, 1)
        if self.column:
            numbers = np.hstack([parts.constant(self.operand), numbers])
        parts.tensors[self.operand] = whole_constant(numbers)

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        values = parts.constant(self.operand)
        if values.ndim != 2 or values.shape[1] != 2:
            raise UnknownOperatorForm(f"its operand {self.operand} has not two columns")
        return tuple(int(number) for number in values[:, self.column])


class IndexTypeOf(Place):
    """The dtype of operands that hold whole numbers; declared after what stands in these."""

    def __init__(self, *operands: int, types: tuple[str, ...] = ("int32", "int64")) -> None:
        """Declare that operands have one of some dtypes, the first of which is the simplest."""
        super().__init__(Choice("index_type", types))
        self.operands = operands

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        for at in {*self.operands} & {*parts.tensors}:
            tensor = replace(parts.tensors[at], dtype=str(setting))
            if tensor.values is not None:
                tensor = tensor.constant(tensor.values)
            parts.tensors[at] = tensor

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        known = {parts.tensors[at].dtype for at in self.operands if at in parts.tensors}
        if len(known) != 1:
            raise UnknownOperatorForm("its operands of whole numbers have several types")
        return known.pop()


def whole_constant(values: Values) -> GraphValue:
    """Return a constant of whole numbers."""
    return GraphValue(values.dtype.name, values.shape, None, np.asarray(values, order="C"))
