"""The parts of a model of one operator, and which parameter stands where in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from edgeflare.conform.operator_graph import GraphValue, Option, Values
from edgeflare.conform.specification.operator_specification import UnknownOperatorForm
from edgeflare.conform.specification.parameter import OperatorParameter, Setting
from edgeflare.conform.specification.whole_numbers import whole_numbers


@dataclass(slots=True)
class ModelParts:
    """What an operator reads, and its options, while a model is built or read.

    Attributes:
        data: dtype and quantization of what is moved.
        options: options of the operator, by name.
        tensors: tensors that it reads, by their place; those that are left out are not there.

    """

    data: GraphValue
    options: dict[str, Option] = field(default_factory=dict)
    tensors: dict[int, GraphValue] = field(default_factory=dict)

    def constant(self, at: int) -> Values:
        """Return the values of a constant; UnknownOperatorForm if it is none."""
        tensor = self.tensors.get(at)
        if tensor is None or tensor.values is None:
            raise UnknownOperatorForm(f"its operand {at} is no constant")
        return tensor.values


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


class ShapeOf(Place):
    """The shape of a tensor that is given."""

    def __init__(self, parameter: OperatorParameter, operand: int = 0, dtype: str = "") -> None:
        """Declare a place.

        Args:
            parameter: the parameter that stands there.
            operand: the tensor.
            dtype: dtype of the tensor; empty for that of what is moved.

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
        if self.operand not in parts.tensors:
            raise UnknownOperatorForm(f"it has no operand {self.operand}")
        return parts.tensors[self.operand].shape


class OptionOf(Place):
    """An option."""

    def __init__(self, parameter: OperatorParameter, name: str) -> None:
        """Declare a place; `name` is the option's in the schema."""
        super().__init__(parameter)
        self.name = name

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write a setting into a model."""
        parts.options[self.name] = setting

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return option(parts.options, self.name)


class ReadFrom(Place):
    """What is written with other parts of a model, and read from them."""

    def __init__(
        self, parameter: OperatorParameter, reading: Callable[[ModelParts], Setting]
    ) -> None:
        """Declare how a parameter is read."""
        super().__init__(parameter)
        self._reading = reading

    def write(self, setting: Setting, parts: ModelParts) -> None:
        """Write nothing: `MovementSpecification.complete` does."""

    def read(self, parts: ModelParts) -> Setting:
        """Return the setting of a model."""
        return self._reading(parts)


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
        return tuple(int(one) for one in values.reshape(-1))


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
        return tuple(int(one) for one in values[:, self.column])


class IndexTypeOf(Place):
    """The dtype of operands that hold whole numbers; declared after what stands in these."""

    def __init__(self, parameter: OperatorParameter, *operands: int) -> None:
        """Declare that operands have the dtype that the parameter says."""
        super().__init__(parameter)
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


def option(options: Mapping[str, Option], name: str) -> Option:
    """Return an option; UnknownOperatorForm if the model does not have it."""
    if name not in options:
        raise UnknownOperatorForm(f"it has no option {name}")
    return options[name]
