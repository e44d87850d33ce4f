"""Configurations near those that fail, and others, among which refinement chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.specification.parameter import OperatorParameter
from edgeflare.conform.specification.settings import Configuration, Setting

_TRIES = 30


@dataclass(frozen=True, slots=True)
class ConfigurationSource:
    """Where configurations of one operator come from.

    Attributes:
        specification: of the operator.
        type: of the operator.
        failing: configurations that fail.
        rng: draws.

    """

    specification: OperatorSpecification
    type: str
    failing: Sequence[Configuration]
    rng: np.random.Generator

    def drawn(self, way: int, spoken: Sequence[str]) -> Configuration | None:
        """Return a valid configuration; None where none was found.

        Args:
            way: how it is made: any number, the next one for another way.
            spoken: names of parameters that a possible condition speaks of.

        """
        made = _WAYS[way % len(_WAYS)]
        for _ in range(_TRIES):
            one = made(self, spoken)
            if self.specification.invalid(self.type, one) is None:
                return one
        return None

    @property
    def parameters(self) -> tuple[OperatorParameter, ...]:
        """Those of the operator."""
        return self.specification.parameters(self.type)

    def chosen(self) -> dict[str, Setting]:
        """Return one of the configurations that fail."""
        return dict(self.failing[int(self.rng.integers(len(self.failing)))])

    def fresh(self) -> dict[str, Setting]:
        """Return settings at random, with a fault or without."""
        return dict(self.specification.draw(self.type, self.rng))


def _one_changed(source: ConfigurationSource, _spoken: Sequence[str]) -> Configuration:
    """Return a failing configuration with one setting changed, sometimes two."""
    changes = 1 + int(source.rng.random() < 0.3)
    return _changed(source, source.parameters, changes)


def _spoken_changed(source: ConfigurationSource, spoken: Sequence[str]) -> Configuration:
    """Return a failing configuration with a setting changed that a condition speaks of."""
    known = [one for one in source.parameters if one.name in spoken]
    return _changed(source, known or source.parameters, 1)


def _spoken_kept(source: ConfigurationSource, spoken: Sequence[str]) -> Configuration:
    """Return fresh settings, and a failing model's where a condition speaks of them."""
    kept = source.chosen()
    return {**source.fresh(), **{name: kept[name] for name in spoken}}


def _mixed(source: ConfigurationSource, _spoken: Sequence[str]) -> Configuration:
    """Return a failing configuration, a third of whose settings are fresh."""
    fresh, kept = source.fresh(), source.chosen()
    return {name: fresh[name] if source.rng.random() < 1 / 3 else one for name, one in kept.items()}


def _fresh(source: ConfigurationSource, _spoken: Sequence[str]) -> Configuration:
    return source.fresh()


_WAYS: tuple[Callable[[ConfigurationSource, Sequence[str]], Configuration], ...] = (
    _one_changed,
    _spoken_changed,
    _spoken_kept,
    _mixed,
    _fresh,
)


def _changed(
    source: ConfigurationSource, parameters: Sequence[OperatorParameter], changes: int
) -> Configuration:
    changed: Configuration = source.chosen()
    for _ in range(changes if parameters else 0):
        one = parameters[int(source.rng.integers(len(parameters)))]
        setting = _other_setting(one, changed, source)
        if one.fault(setting) is not None:
            setting = one.draw(source.rng)
        other = {**changed, one.name: setting}
        changed = source.specification.adapted(source.type, other, one.name)
    return changed


def _other_setting(
    parameter: OperatorParameter, configuration: Configuration, source: ConfigurationSource
) -> Setting:
    """Return another setting of a parameter: that of one of its unit, a near one, or any."""
    rng, setting = source.rng, configuration[parameter.name]
    kind = rng.random()
    if kind < 0.25 and parameter.unit:
        alike = [one.name for one in source.parameters if one.unit == parameter.unit]
        return configuration[alike[int(rng.integers(len(alike)))]]
    if kind < 0.6 and not isinstance(setting, bool | str):
        return _near(setting, rng)
    return parameter.draw(rng)


def _near(setting: float | tuple[int, ...], rng: np.random.Generator) -> Setting:
    sign = 1 if rng.random() < 0.5 else -1
    if isinstance(setting, int):
        return setting + sign
    if isinstance(setting, float):
        return float(np.float32(setting * 2.0 ** (sign * rng.uniform(0, 2))))
    shape = list(setting)
    if not shape:
        return (1,)
    at = int(rng.integers(len(shape)))
    shape[at] = max(0, shape[at] + sign)
    return tuple(shape)
