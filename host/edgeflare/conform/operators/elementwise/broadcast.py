"""Shapes that are broadcast with each other, each in words that do not depend on the result's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edgeflare.conform.operator_graph import Option, Values
from edgeflare.conform.operators.elementwise.real_answers import NO_LOSS, Loss
from edgeflare.conform.specification.activation_tensors import Operand, Shape
from edgeflare.conform.specification.parameter import (
    Configuration,
    OperatorParameter,
    ParameterKind,
    Setting,
)

NOT_BROADCAST = "none"

_SHAPES: Mapping[str, Callable[[Shape], Shape]] = {
    NOT_BROADCAST: lambda shape: shape,
    "scalar": lambda shape: (),  # noqa: ARG005 - of one kind with the others
    "single value": lambda shape: (1,) * len(shape),
    "vector": lambda shape: shape[-1:],
    "all but last": lambda shape: (*(1,) * (len(shape) - 1), *shape[-1:]),
    "last": lambda shape: (*shape[:-1], 1)[: len(shape)],
    "first": lambda shape: (1, *shape[1:])[: len(shape)],
    "lower rank": lambda shape: shape[1:],
}
"""The operand's shape for one of the result, by what is broadcast."""

_OTHERWISE = "otherwise"
_KEPT, _STRETCHED = "=", "1"
"""One of these for each dimension of an operand that is broadcast in no way that has a name."""


class Broadcast(OperatorParameter):
    """How an operand's shape follows from the result's.

    A setting is a word, or for what has none a character for each dimension of the operand, which
    stand at the end of the result's: "=" for one that is the result's, "1" for one that is
    stretched, such as "=1=1".
    """

    kind: ParameterKind = "shape"
    unit = ""
    simplest = NOT_BROADCAST
    buckets = (*_SHAPES, _OTHERWISE)

    def __init__(self, role: str) -> None:
        """Declare how the operand of a role is broadcast."""
        self.name = f"{role}_broadcast"

    def bucket(self, setting: Setting) -> str:
        """Return the bucket of a setting."""
        if setting in _SHAPES:
            return str(setting)
        if not isinstance(setting, str) or not setting or set(setting) - {_KEPT, _STRETCHED}:
            raise ValueError(f"{self.name} {setting}")
        return _OTHERWISE

    def draw(self, rng: np.random.Generator) -> Setting:
        """Return a setting."""
        bucket = self.buckets[int(rng.integers(len(self.buckets)))]
        if bucket != _OTHERWISE:
            return bucket
        return "".join(rng.choice([_KEPT, _STRETCHED], int(rng.integers(2, 6))))

    def simpler(self, setting: Setting) -> Iterator[Setting]:
        """Yield simpler settings."""
        yield from (form for form in (NOT_BROADCAST, "scalar") if form != setting)


def operand_shape(setting: str, shape: Shape) -> Shape | None:
    """Return the shape of an operand of which the result has a shape; None if there is none."""
    if setting in _SHAPES:
        return _SHAPES[setting](shape)
    if len(setting) > len(shape):
        return None
    tail = shape[len(shape) - len(setting) :]
    return tuple(
        1 if mark == _STRETCHED else size for mark, size in zip(setting, tail, strict=True)
    )


def broadcast_setting(operand: Shape, shape: Shape) -> str:
    """Return how an operand is broadcast to a shape, by the first word that says it."""
    named = (word for word, of in _SHAPES.items() if of(shape) == operand)
    tail = shape[len(shape) - len(operand) :]
    pairs = zip(operand, tail, strict=True)
    return next(named, None) or "".join(_KEPT if own == size else _STRETCHED for own, size in pairs)


def broadcast_fault(settings: Sequence[str], shape: Shape) -> str | None:
    """Return why operands that are broadcast in some ways do not give a shape, or None."""
    shapes = [operand_shape(form, shape) for form in settings]
    known = [own for own in shapes if own is not None]
    if len(known) < len(shapes):
        return f"an operand has more dimensions than {shape}"
    if np.broadcast_shapes(*known) != shape:
        return f"{' and '.join(map(str, known))} do not make {shape}"
    for setting, own in zip(settings, known, strict=True):
        if (word := broadcast_setting(own, shape)) != setting:
            return f"{setting} is called {word} for {shape}"
    return None


def drawn_broadcasts(
    settings: Sequence[str], shape: Shape, most_rank: int, rng: np.random.Generator
) -> tuple[list[str], Shape]:
    """Return how operands are broadcast, and the shape that comes of it.

    Args:
        settings: how each would be broadcast; half of the time none is, else mostly one.
        shape: shape that the result would have.
        most_rank: most dimensions of a result of which operands are broadcast.
        rng: draws which of them are broadcast.

    """
    kept = [NOT_BROADCAST] * len(settings)
    if not settings or len(shape) > most_rank or rng.random() < 2 / 5:
        return kept, shape
    one = int(rng.integers(len(settings)))
    stretched = range(len(settings)) if rng.random() < 1 / 4 else (one,)
    for at in stretched:
        kept[at] = settings[at]
    shapes = [operand_shape(form, shape) for form in kept]
    known = [shape if own is None else own for own in shapes]
    result = np.broadcast_shapes(*known)
    return [broadcast_setting(own, result) for own in known], result


@dataclass(frozen=True, slots=True)
class BroadcastingFunction:
    """What one operator computes, and in which models.

    Attributes:
        operator: name in the schema.
        versions: the lowest version that has a type, by type.
        of: the function of float64 values, or of int64 ones of whole numbers.
        loss: what float32 arithmetic may lose.
        kind: "choice" of one of the operands' values as it stands, "order" of their values, or
            "arithmetic".
        roles: names of the operands, in their order; "condition" is bool.
        scales: "each" operand and the result have their own, "operands" have their own and the
            result none, or "one" is that of all.
        result: the type of the result, if it is not that of the operands.
        activations: fused ones; () for an operator without that option.
        most_rank: most dimensions of a result of which operands are broadcast.
        stretched: operands that may be broadcast.
        constants: operands that may be constants.
        fixed_options: options of the schema that are always the same, by type.
        raised_version: the lowest version for an operand of a shape, or for scales.
        least_output: the least scale of the result for a configuration that kernels take.
        adjust: changes the values of the operands in place, to ones for which there is a result,
            or which show more.

    """

    operator: str
    versions: Mapping[str, int]
    of: Callable[..., Values]
    loss: Loss = NO_LOSS
    kind: Literal["arithmetic", "choice", "order"] = "arithmetic"
    roles: tuple[str, ...] = ("first", "second")
    scales: Literal["each", "operands", "one"] = "each"
    result: str | None = None
    activations: tuple[str, ...] = ()
    most_rank: int = 5
    stretched: tuple[str, ...] = ("first", "second")
    constants: tuple[str, ...] = ("second", "first")
    fixed_options: Mapping[str, Mapping[str, Option]] = field(default_factory=dict)
    raised_version: Callable[[Configuration], int] = lambda _: 1
    least_output: Callable[[str, Configuration], float] = lambda _, __: 0.0
    adjust: Callable[[Sequence[Operand]], None] = lambda _: None
