"""Kernel faults that show in some models only, as what a run observes; no model is run.

The predicates are written anew here, so that learning is not tested against its own vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from drafting import fresh
from edgeflare.conform.drafts.cells import Cell, cell_parameters
from edgeflare.conform.findings.finding_evidence import Observation
from edgeflare.conform.findings.grouping import FindingGroup, grouped
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.rounds.refinement import proposals
from edgeflare.conform.specification.parameter import (
    Choice,
    Configuration,
    Dimensions,
    OperatorParameter,
    ScaleParameter,
    Setting,
    Whole,
    ZeroPoint,
    dimensions,
    number,
)
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement, Symptom

Meets = Callable[[Configuration], bool]


@dataclass(frozen=True)
class SimulatedFault:
    """A fault of one operator and type.

    Attributes:
        cell: operator and type.
        words: its condition, for messages.
        meets: whether a configuration meets it.
        rate: share of such models in which it shows.
        symptom: of these.

    """

    cell: Cell
    words: str
    meets: Meets
    rate: float
    symptom: Symptom = "wrong-values"


def observed(
    faults: Sequence[SimulatedFault],
    cell: Cell,
    configuration: Configuration,
    rng: np.random.Generator,
) -> Observation:
    """Return what is seen of a model on a device with faults; draws once for each fault."""
    judgement = KernelJudgement("right", telling=1000)
    for fault in faults:
        if fault.meets(configuration) and rng.random() < fault.rate:
            judgement = KernelJudgement("device", fault.symptom, counted=True)
    return Observation(*cell, all_settings(cell, configuration), judgement)


def all_settings(cell: Cell, configuration: Configuration) -> Mapping[str, Setting]:
    """Return a configuration and the facts that follow from it."""
    facts = known_operators()[cell[0]].facts(cell[1], configuration)
    return {**configuration, **facts}


def refined(
    faults: Sequence[SimulatedFault],
    cell: Cell,
    rng: np.random.Generator,
    *,
    drawn: int = 30,
    most: int = 300,
    each: int = 48,
) -> tuple[list[FindingGroup], int]:
    """Return the findings of a device with faults after refinement, and how many models it took.

    Args:
        faults: all of one cell.
        cell: it.
        rng: draws.
        drawn: models before the first refinement; more if none of them fails.
        most: models of all refinements.
        each: models of one refinement.

    """
    seen: list[Observation] = []
    while len(seen) < drawn or all(one.judgement.verdict == "right" for one in seen):
        seen.append(observed(faults, cell, fresh(cell, rng), rng))
    before, specifications = len(seen), known_operators()
    while (left := most - (len(seen) - before)) > 0:
        groups = grouped(seen, specifications)
        share = max(1, min(each, left) // len(groups))
        asked = [
            configuration
            for group in groups
            for configuration in proposals(specifications[cell[0]], group, seen, rng, share)
        ]
        if not asked:
            break
        seen += [observed(faults, cell, one, rng) for one in asked[:left]]
    return grouped(seen, specifications), len(seen) - before


def agreement(
    groups: Sequence[FindingGroup],
    faults: Sequence[SimulatedFault],
    cell: Cell,
    rng: np.random.Generator,
    models: int = 1000,
) -> float:
    """Return the share of fresh models of which learned and planted conditions say the same."""
    configurations = [fresh(cell, rng) for _ in range(models)]
    table = SettingsTable([all_settings(cell, configuration) for configuration in configurations])
    said = np.any([group.condition.held(table) for group in groups], axis=0)
    true = np.array(
        [any(fault.meets(configuration) for fault in faults) for configuration in configurations]
    )
    return float((said == true).mean())


def drawn_fault(cell: Cell, rng: np.random.Generator) -> SimulatedFault:
    """Return a fault whose condition has one or two terms, each of which matters.

    It is met by 3 to 70 % of models, and shows in 30 to 60 % of them.
    """
    sample = [fresh(cell, rng) for _ in range(300)]
    while True:
        terms = [term for parameter in cell_parameters(cell) for term in _terms(parameter, rng)]
        terms += list(_comparisons(cell_parameters(cell)))
        places = rng.choice(len(terms), 1 + int(rng.integers(2)), replace=False)
        chosen = [terms[int(at)] for at in places]
        shares = [float(np.mean([meets(one) for one in sample])) for _, meets in chosen]
        fault = SimulatedFault(
            cell, " and ".join(words for words, _ in chosen), _all(chosen), rng.uniform(0.3, 0.6)
        )
        share = float(np.mean([fault.meets(one) for one in sample]))
        if 0.03 < share < 0.7 and (len(chosen) == 1 or share < 0.9 * min(shares)):
            return fault


def _all(terms: Sequence[tuple[str, Meets]]) -> Meets:
    return lambda one: all(meets(one) for _, meets in terms)


def _terms(parameter: OperatorParameter, rng: np.random.Generator) -> Iterator[tuple[str, Meets]]:
    """Yield some predicates over a parameter."""
    name = parameter.name
    if isinstance(parameter, Choice):
        setting = parameter.settings[int(rng.integers(len(parameter.settings)))]
        yield f"{name} == {setting}", lambda one: bool(one[name] == setting)
    elif isinstance(parameter, Whole | ZeroPoint):
        limit = int(rng.integers(parameter.low + 1, parameter.high + 1))
        yield f"{name} >= {limit}", lambda one: number(one, name) >= limit
        yield f"{name} < {limit}", lambda one: number(one, name) < limit
        if parameter.high > 8:
            divisor = int(rng.choice([2, 4, 8]))
            yield f"{name} % {divisor} != 0", lambda one: number(one, name) % divisor != 0
    elif isinstance(parameter, ScaleParameter):
        edge = float(2 ** rng.uniform(parameter.low + 2, parameter.high - 2))
        yield f"{name} >= {edge:.3g}", lambda one: number(one, name) >= edge
        yield f"{name} < {edge:.3g}", lambda one: number(one, name) < edge
    elif isinstance(parameter, Dimensions):
        size, rank = int(rng.integers(2, 100)), int(rng.integers(1, 5))
        yield f"size of {name} >= {size}", lambda one: prod(dimensions(one, name)) >= size
        yield f"rank of {name} >= {rank}", lambda one: len(dimensions(one, name)) >= rank
        yield f"{name} ends odd", lambda one: any(at % 2 for at in dimensions(one, name)[-1:])


def _comparisons(parameters: Sequence[OperatorParameter]) -> Iterator[tuple[str, Meets]]:
    for parameter in parameters:
        for other in parameters:
            if parameter.unit and parameter.unit == other.unit and parameter.name < other.name:
                yield _larger(parameter.name, other.name)
                yield _larger(other.name, parameter.name)


def _larger(name: str, other: str) -> tuple[str, Meets]:
    return f"{name} > {other}", lambda one: number(one, name) > number(one, other)
