"""Which faults of kernels are planted: operators, types and conditions drawn by a seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from edgeflare.conform.execution.kernel_arm import ModelAnswer
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.operator_graph import OperatorGraph, Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import OPERAND_STYLES
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    ScaleParameter,
    Setting,
    Whole,
    ZeroPoint,
)
from edgeflare.conform.verdict.operator_verdict import judged
from kernel_fault_kinds import GROUPS, FaultKind, wrong_answer
from operator_run import OperatorRun

_OF_EACH = 2
_OF_AXES = {"one axis ignored": 4}
"""Faults of a group of which there are more, since it is of strides, dilations and padding."""

_SIZES = ("result_size", "size", "output_size")
"""Names that operators have for the size of the result."""

_OF_SHAPES = ("rank({}) ≥ 3", "rank({}) ≥ 2", "size({}) ≥ 32", "{}[-1] ≥ 4", "{}[-1] % 4 ≠ 0")

_DRAWN = 200
_SHARE = (0.08, 0.7)
"""Of models, that a condition holds of. What holds of fewer is hardly met with within minutes."""

_TELLING = (0.15, 0.85)
"""Of models, that each predicate over a parameter holds of."""

_SHOWN = 0.3
"""Of the models that a condition holds of, those that show the fault at least."""

_TRIED = 12
_ATTEMPTS = 60


@dataclass(frozen=True)
class KernelFault:
    """A fault of a kernel.

    Attributes:
        group: of kinds, a key of `GROUPS`.
        kind: which of the group.
        operator: its name in the schema.
        type: of the operator.
        condition: predicates over settings, all of which hold of the models that it is in.

    """

    group: str
    kind: str
    operator: str
    type: str
    condition: tuple[str, ...]

    @property
    def what(self) -> FaultKind:
        """What its kernel does."""
        return GROUPS[self.group][self.kind]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> KernelFault:
        """Return the fault of fields that come from JSON."""
        return cls(**{**fields, "condition": tuple(fields["condition"])})

    def holds(self, settings: Mapping[str, Setting]) -> bool:
        """Return whether a model of its operator and type has it."""
        return FaultCondition.parsed(self.condition).holds(settings)

    def __str__(self) -> str:
        when = ", ".join(self.condition) or "always"
        return f"{self.group} ({self.kind}) in {self.operator} {self.type} if {when}"


def drawn_faults(seed: int, groups: Sequence[str] = tuple(GROUPS)) -> Iterator[KernelFault]:
    """Yield two faults of each group, and four of the one that has axes.

    A fault that shows in too few of the models that its condition holds of is drawn again.
    """
    for number, group in enumerate(GROUPS):
        rng = np.random.default_rng([seed, number])
        if group in groups:
            for kind in _kinds(group, rng):
                yield _drawn(group, kind, rng)


def settings_of(
    specification: OperatorSpecification, type_: str, configuration: Configuration
) -> Mapping[str, Setting]:
    """Return what conditions speak of: settings, and the facts that follow from them."""
    return {**configuration, **specification.facts(type_, configuration)}


def fresh_configurations(
    specification: OperatorSpecification, type_: str, rng: np.random.Generator, count: int
) -> list[Configuration]:
    """Draw valid configurations."""
    found: list[Configuration] = []
    while len(found) < count:
        drawn = specification.draw(type_, rng)
        if specification.invalid(type_, drawn) is None:
            found.append(drawn)
    return found


def shown(fault: KernelFault, configuration: Configuration, seed: int) -> bool:
    """Return whether a model shows a fault beside a kernel that computes exactly."""
    specification = known_operators()[fault.operator]
    rng = np.random.default_rng(seed)
    graph = specification.build(fault.type, configuration, rng)
    rows = [specification.operands(graph, style, rng) for style in OPERAND_STYLES]
    right, wrong = _answers(fault.what, graph, rows)
    operands = tuple(np.stack(one) for one in zip(*rows, strict=True))
    answers = {"device": ModelAnswer(wrong), "xnnpack": ModelAnswer(right)}
    verdict = judged(specification, fault.type, graph, operands, answers).verdict
    return verdict == fault.what.verdict


def _answers(
    kind: FaultKind, graph: OperatorGraph, rows: Sequence[Sequence[Values]]
) -> tuple[tuple[Values, ...], tuple[Values, ...]]:
    right: list[list[Values]] = []
    wrong: list[list[Values]] = []
    for row in rows:
        run = OperatorRun.of(graph, row)
        before = right[-1] if right else None
        right.append(run.answer())
        wrong.append(wrong_answer(kind, run, right[-1], before))
    return (
        tuple(np.stack(one) for one in zip(*right, strict=True)),
        tuple(np.stack(one) for one in zip(*wrong, strict=True)),
    )


def _kinds(group: str, rng: np.random.Generator) -> Iterator[str]:
    """Yield kinds of a group in an order at random, again and again if there are too few."""
    count = _OF_AXES.get(group, _OF_EACH)
    known = [str(one) for one in rng.permutation(list(GROUPS[group]))]
    if group in _OF_AXES:
        # One of each setting, whichever axis, before the others.
        names = dict.fromkeys(one.split("_")[0] for one in known)
        firsts = [next(one for one in known if one.startswith(name)) for name in names]
        known = [*firsts, *(one for one in known if one not in firsts)]
    for at in range(count):
        yield known[at % len(known)]


def _drawn(group: str, kind: str, rng: np.random.Generator) -> KernelFault:
    what = GROUPS[group][kind]
    cells = list(_cells(what))
    for _ in range(_ATTEMPTS):
        if not cells:
            break
        operator, type_ = cells[int(rng.integers(len(cells)))]
        known = _known_settings(operator, type_)
        condition = _condition(what, operator, type_, rng)
        fault = KernelFault(group, kind, operator, type_, condition)
        held = FaultCondition.parsed(condition).held(_table(operator, type_))
        holding = [one for (one, _), holds in zip(known, held, strict=True) if holds]
        if what.effect == "crash" and holding:
            return fault
        if not _within(_SHARE, len(holding) / len(known)):
            continue
        some = holding[:_TRIED]
        if what.effect == "hang":
            return fault
        if sum(shown(fault, one, at) for at, one in enumerate(some)) >= _SHOWN * len(some):
            return fault
    raise LookupError(f"no operator can have the fault {group}, {kind}")


def _cells(what: FaultKind) -> Iterator[tuple[str, str]]:
    """Yield the operators and types that can have a kind of fault."""
    for operator, specification in known_operators().items():
        if what.operators and operator not in what.operators:
            continue
        for type_ in specification.types:
            if type_ in what.types and _wanted(what) <= _names(operator, type_):
                yield operator, type_


def _wanted(what: FaultKind) -> set[str]:
    """Return the settings that an operator has to have; "" for the size of the result."""
    named = {one.split()[0].replace("rank(shape)", "shape") for one in what.shows}
    return {"" if "{" in one else one for one in named} | set(what.needs)


@cache
def _names(operator: str, type_: str) -> set[str]:
    specification = known_operators()[operator]
    (one,) = fresh_configurations(specification, type_, np.random.default_rng(0), 1)
    names = set(settings_of(specification, type_, one))
    return names | ({""} if names & set(_SIZES) else set())


@cache
def _known_settings(
    operator: str, type_: str
) -> tuple[tuple[Configuration, Mapping[str, Setting]], ...]:
    specification = known_operators()[operator]
    rng = np.random.default_rng(0)
    drawn = fresh_configurations(specification, type_, rng, _DRAWN)
    return tuple((one, settings_of(specification, type_, one)) for one in drawn)


@cache
def _table(operator: str, type_: str) -> SettingsTable:
    return SettingsTable([settings for _, settings in _known_settings(operator, type_)])


def _condition(
    what: FaultKind, operator: str, type_: str, rng: np.random.Generator
) -> tuple[str, ...]:
    """Return what a fault needs to show, and mostly a predicate or two over parameters."""
    names = _names(operator, type_)
    size = next((one for one in _SIZES if one in names), "")
    shows = [one.replace("{size}", size) for one in what.shows]
    if what.effect == "crash":
        return tuple(shows)
    count = int(rng.integers(2)) if shows else int(rng.choice([1, 1, 2]))
    spoken = {one.split()[0] for one in shows}
    parameters = [
        one for one in known_operators()[operator].parameters(type_) if one.name not in spoken
    ]
    order = [parameters[int(at)] for at in rng.permutation(len(parameters))]
    drawn = (_predicate(one, parameters, rng) for one in order)
    telling = (one for one in drawn if _within(_TELLING, _share(one, operator, type_)))
    return (*shows, *islice(telling, count))


def _share(predicate: str, operator: str, type_: str) -> float:
    """Return of which share of models a predicate holds; 0 for none."""
    known = _known_settings(operator, type_)
    if not predicate:
        return 0.0
    held = FaultCondition.parsed([predicate])
    return sum(held.holds(settings) for _, settings in known) / len(known)


def _within(limits: tuple[float, float], share: float) -> bool:
    return limits[0] <= share <= limits[1]


def _predicate(
    one: OperatorParameter, all_: Sequence[OperatorParameter], rng: np.random.Generator
) -> str:
    """Return a predicate over a parameter, "" where there is none."""
    if isinstance(one, Whole):
        return _of_number(one, all_, rng)
    text = ""
    if isinstance(one, Choice):
        text = f"{one.name} is {_written(one.settings[int(rng.integers(len(one.settings)))])}"
    elif isinstance(one, ScaleParameter):
        text = f"{one.name} {rng.choice(['≥', '<'])} 2^{rng.choice([-6, -3, 0, 3])}"
    elif isinstance(one, ZeroPoint):
        text = f"{one.name} {rng.choice(['≥', '<'])} {one.simplest}"
    elif isinstance(one, Dimensions):
        text = str(rng.choice(_OF_SHAPES)).format(one.name)
    return text


def _of_number(one: Whole, all_: Sequence[OperatorParameter], rng: np.random.Generator) -> str:
    rivals = [other.name for other in all_ if other.unit == one.unit != "" and other != one]
    if rivals and rng.random() < 1 / 4:
        return f"{one.name} > {rng.choice(rivals)}"
    return f"{one.name} {rng.choice(['≥', '≤'])} {_threshold(one, rng)}"


def _threshold(one: Whole, rng: np.random.Generator) -> int:
    known = [number for number in (1, 2, 3, 4, 8, 16) if one.low < number < one.high]
    return int(rng.choice(known)) if known else one.high


def _written(setting: bool | int | str) -> str:
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    return str(setting)
