"""Concatenation, which for uint8 also brings all tensors to the result's scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgeflare.conform.graphs.operator_graph import (
    GraphValue,
    OperatorGraph,
    Option,
    Quantization,
)
from edgeflare.conform.operators.movement.fitting import Settings
from edgeflare.conform.operators.movement.movement_specification import MovementSpecification
from edgeflare.conform.specification.exact_answer import ExactAnswer, steps
from edgeflare.conform.specification.operator_specification import (
    UINT8,
    Operand,
    OperatorReading,
    UnknownOperatorForm,
)
from edgeflare.conform.specification.parameter import OperatorParameter, ScaleParameter, ZeroPoint
from edgeflare.conform.specification.settings import (
    Configuration,
    Setting,
    dimensions,
    number,
    whole,
)

_OTHER, _OUTPUT = "other", "output"


class Concatenation(MovementSpecification):
    """A concatenation; of uint8 all tensors but the first, and the result, have own scales.

    Models of older converters have these. For all other types the scales are equal.
    """

    def parameters(self, type_: str) -> tuple[OperatorParameter, ...]:
        """Return the parameters of a type."""
        if type_ != UINT8:
            return super().parameters(type_)
        names = (_OTHER, _OUTPUT)
        more = [
            (ScaleParameter(f"{one}_scale"), ZeroPoint(f"{one}_zero_point", UINT8)) for one in names
        ]
        return (*super().parameters(type_), *(one for pair in more for one in pair))

    def build(
        self, type_: str, configuration: Configuration, rng: np.random.Generator
    ) -> OperatorGraph:
        """Return the model of a valid configuration."""
        graph = super().build(type_, configuration, rng)
        if type_ != UINT8:
            return graph
        (node,) = graph.nodes
        values = list(graph.values)
        for name, places in ((_OTHER, node.inputs[1:]), (_OUTPUT, node.outputs)):
            for at in places:
                values[at] = replace(values[at], quantization=_quantization(configuration, name))
        return replace(graph, values=tuple(values))

    def read(self, graph: OperatorGraph) -> OperatorReading:
        """Return what a model of this one operator is."""
        (node,) = graph.nodes
        first, *others = (one for one in graph.operands(node) if one is not None)
        (result,) = graph.results(node)
        type_, settings = self._read(node.options, graph.operands(node))
        known = {one.quantization for one in others}
        if type_ == UINT8 and len(known) < 2:
            other = known.pop() if known else first.quantization
            settings |= _settings(_OTHER, other) | _settings(_OUTPUT, result.quantization)
        elif known - {first.quantization} or result.quantization != first.quantization:
            raise UnknownOperatorForm("its tensors have several scales")
        return OperatorReading(type_, settings)

    def exact(
        self,
        options: Mapping[str, Option],
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],
    ) -> tuple[ExactAnswer, ...]:
        """Return the exact answers: to the bit where all scales are equal."""
        present = [one for one in operands if one is not None]
        if len({one.quantization for one in (*results, *(one.value for one in present))}) == 1:
            return super().exact(options, operands, results)
        axis = options["axis"]
        if not isinstance(axis, int):
            raise UnknownOperatorForm(f"its axis is {axis}")
        return (steps(np.concatenate([one.real for one in present], axis)),)


def fit_scales(settings: Settings) -> Settings:
    """Return settings whose other tensors, if there are none, have the scale of the first."""
    if f"{_OTHER}_scale" in settings and not dimensions(settings, "other_sizes"):
        settings[f"{_OTHER}_scale"] = settings["input_scale"]
        settings[f"{_OTHER}_zero_point"] = settings["input_zero_point"]
    return settings


def near_scales(settings: Settings, rng: np.random.Generator) -> Settings:
    """Return settings whose scales differ by a factor of 8 at most, often equal ones."""
    if f"{_OTHER}_scale" not in settings:
        return settings
    near = dict(settings)
    for one in (_OTHER, _OUTPUT):
        if rng.random() < 1 / 3:
            near[f"{one}_scale"] = settings["input_scale"]
            near[f"{one}_zero_point"] = settings["input_zero_point"]
        else:
            scale = number(settings, "input_scale") * 2 ** rng.uniform(-3, 3)
            near[f"{one}_scale"] = float(np.float32(scale))
    return near


def _quantization(configuration: Configuration, name: str) -> Quantization:
    scale = number(configuration, f"{name}_scale")
    return Quantization((scale,), whole(configuration, f"{name}_zero_point"))


def _settings(name: str, known: Quantization | None) -> dict[str, Setting]:
    if known is None or len(known.scales) != 1:
        raise UnknownOperatorForm("a tensor has not one scale")
    return {f"{name}_scale": known.scales[0], f"{name}_zero_point": known.zero_point}
