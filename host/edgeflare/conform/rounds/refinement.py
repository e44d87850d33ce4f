"""More models for findings, so that their conditions become certain: for which, and what models.

Only findings that count get some: the condition of another one is what the models that are drawn
show of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.drafts.cells import drawn_seed
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, NodeGraphs
from edgeflare.conform.findings.condition_learning import Hypothesis, hypotheses
from edgeflare.conform.findings.finding_evidence import (
    FindingKey,
    Observation,
    evidence_for,
    finding_key,
    stronger,
)
from edgeflare.conform.findings.grouping import FindingGroup, meets_any
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.rounds.conformance import Conformance, settings_of
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.specification.parameter import Configuration, OperatorParameter, Setting
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

_ROUND: Final = 192
"""Models of a refining round, of all findings together."""

_EACH: Final = 48
"""Most models of a refining round for one finding."""

_ENOUGH: Final = 300
"""Models after which a key's findings are refined no more."""

_DEAR: Final = {"hang": (4, 16), "crash": (12, 60), "corrupts": (4, 16)}
"""Failures that cost worker processes, or the time limit of an input: models of one refining round;
and failing models after which none that meets the condition is drawn any more."""


_SLOW: Final = {**_DEAR, "neighbours": (12, 60)}
"""Those failures and the ones that take a process for each model to be seen; models of the latter
are drawn all the same."""

_TRIES = 30

POOL = 5
"""Configurations that are considered for each that is proposed."""

_EXPLORED = 0.2
"""Share of proposals that are not chosen: the condition may be none of those thought of."""

_TEMPERATURE = 2.0
"""Divisor of differences of scores where models are chosen: less likely conditions have to be told
apart too."""

_CERTAIN = 0.01
"""Bits that a model may tell at most for a condition to count as certain."""

_OFTEN = 0.8
"""Share of failing models from which on a fault may well show always."""

FEW = 20
"""Failing models up to which no condition is certain: what a few share is little evidence, and so
is what they lack."""

_NAMES = re.compile(r"[A-Za-z_]\w*")


@dataclass(slots=True)
class Refinement:
    """Shares models out over the findings that count.

    Attributes:
        asked: models that were run so far for the findings of a key.

    """

    asked: Counter[FindingKey] = field(default_factory=Counter)

    def drafts(
        self,
        groups: Sequence[FindingGroup],
        state: Conformance,
        given: Mapping[int, OperatorGraph],
        seed: Sequence[int],
    ) -> list[Draft]:
        """Return models whose verdicts tell the possible conditions of findings apart.

        Args:
            groups: the findings so far.
            state: state of the run, to whose observations the findings refer.
            given: the operators of the model that the user named, by their place in it.
            seed: seed of what is drawn.

        """
        drafts: list[Draft] = []
        graphs = NodeGraphs(given)
        for at, group in enumerate(member for member in groups if member.key.counted):
            count = min(self._wanted(group), _ROUND - len(drafts))
            if count <= 0:
                continue
            key, rng = group.key, np.random.default_rng([*seed, at])
            observations = state.observations[key.operator, key.type]
            specification = known_operators()[key.operator]
            for settings in proposals(specification, group, observations, rng, count):
                node = DraftNode(key.operator, key.type, settings, drawn_seed(rng), ())
                fresh = (FRESH,) * len(graphs.operands(node))
                drafts.append(Draft((replace(node, sources=fresh),)))
                self.asked[key] += 1
        return drafts

    def is_dear(self, node: DraftNode, group: FindingGroup) -> bool:
        """Return whether a node is known to fail like a finding, in a way that costs much."""
        dear = _DEAR.get(group.key.symptom)
        if dear is None or len(group.failing) < dear[1]:
            return False
        return group.condition.holds(settings_of(node))

    def _wanted(self, group: FindingGroup) -> int:
        """Return how many models a finding may have in this round."""
        left = _ENOUGH - self.asked[group.key]
        slow = _SLOW.get(group.key.symptom)
        if slow is not None:
            left = min(left, slow[0], slow[1] - len(group.failing))
        return min(left, _EACH)


def steers(judgement: KernelJudgement) -> bool:
    """Return whether a finding with such a model steers what is drawn."""
    return judgement.counted or judgement.symptom in _DEAR


def with_failing(
    groups: Sequence[FindingGroup], observations: Sequence[Observation], failing: Sequence[int]
) -> list[FindingGroup] | None:
    """Return findings with further failing models, each in one whose condition it meets.

    Args:
        groups: the findings of a cell so far.
        observations: all models of the cell.
        failing: places of the further ones.

    Returns:
        None if a model meets no condition of its key: then the findings are others.

    """
    places = [list(group.failing) for group in groups]
    for at in failing:
        observation = observations[at]
        key = finding_key(observation)
        fitting = (
            number
            for number, group in enumerate(groups)
            if group.key == key and group.condition.holds(observation.settings)
        )
        if (number := next(fitting, None)) is not None:
            places[number].append(at)
        elif key is None or not _is_weak_sign(key, observation, groups):
            return None
    return [replace(group, failing=tuple(mine)) for group, mine in zip(groups, places, strict=True)]


def _is_weak_sign(
    key: FindingKey, observation: Observation, groups: Sequence[FindingGroup]
) -> bool:
    strong = stronger(key)
    return strong != key and meets_any(
        [group for group in groups if group.key == strong], observation
    )


def proposals(
    specification: OperatorSpecification,
    group: FindingGroup,
    observations: Sequence[Observation],
    rng: np.random.Generator,
    count: int,
) -> list[Configuration]:
    """Return valid configurations whose verdicts tell the possible conditions of a finding apart.

    Args:
        specification: declaration of the finding's operator.
        group: the finding.
        observations: all models so far, to which `group.failing` refers.
        rng: draws.
        count: how many are wanted.

    Returns:
        At most `count`; fewer where there are few valid ones, () once the condition is certain.

    """
    known = hypotheses(evidence_for(group.key, observations, group.failing, specification))
    names = {parameter.name for parameter in specification.parameters(group.key.type)}
    failing = [
        {name: setting for name, setting in observations[at].settings.items() if name in names}
        for at in group.failing
    ]
    source = _ConfigurationSource(specification, group.key.type, failing, rng)
    weights = _weights(known, _TEMPERATURE)
    pool = _pool(source, known, weights, count * POOL)
    if not pool:
        return []
    facts = [{**settings, **specification.facts(group.key.type, settings)} for settings in pool]
    table = SettingsTable(facts)
    held = np.stack([hypothesis.condition.held(table) for hypothesis in known])
    rate = _rate(group, observations, known[0])
    settled = _told(_weights(known, 1.0) @ held, rate).max() < _CERTAIN
    # Two faults together have no condition: that is none to stop at, unless nearly all models fail.
    explained = bool(known[0].condition.predicates) or rate > _OFTEN
    if settled and explained and len(group.failing) > FEW:
        return []
    asked = _asked(held, _told(weights @ held, rate), round(count * (1 - _EXPLORED)))
    rest = [at for at in range(len(pool)) if at not in set(asked)]
    return [pool[at] for at in (*asked, *rest[: count - len(asked)])]


def _weights(known: Sequence[Hypothesis], temperature: float) -> NDArray[np.float64]:
    scores = np.array([hypothesis.score for hypothesis in known])
    weights = np.exp((scores.min() - scores) / temperature)
    return np.asarray(weights / weights.sum(), np.float64)


def _rate(group: FindingGroup, observations: Sequence[Observation], best: Hypothesis) -> float:
    """Return how often the fault shows where its condition is met."""
    cell = [
        observation for observation in observations if observation.operator == group.key.operator
    ]
    cell = [observation for observation in cell if observation.type == group.key.type]
    met = int(
        best.condition.held(SettingsTable([observation.settings for observation in cell])).sum()
    )
    return min(0.95, (len(group.failing) + 1) / (met + 2))


def _told(met: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Return how many bits a model's verdict tells about the condition.

    Args:
        met: probability that each model meets the condition, (models,).
        rate: the probability that it fails if it does.

    """
    return _entropy(met * rate) - met * _entropy(np.array(rate))


def _entropy(share: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = np.clip(share, 1e-12, 1 - 1e-12)
    return np.asarray(-inside * np.log2(inside) - (1 - inside) * np.log2(1 - inside))


def _asked(held: NDArray[np.bool_], told: NDArray[np.float64], count: int) -> list[int]:
    """Return which models to run, those first that tell most, and few that tell the same.

    Args:
        held: whether each model meets each condition: (conditions, models).
        told: bits of each model.
        count: how many.

    """
    alike: dict[bytes, int] = {}
    kinds = [alike.setdefault(column.tobytes(), len(alike)) for column in held.T]
    times = np.zeros(len(alike))
    left = told.copy()
    chosen: list[int] = []
    for _ in range(min(count, len(told))):
        at = int(np.argmax(left / (1 + times[kinds])))
        chosen.append(at)
        times[kinds[at]] += 1
        left[at] = -1.0
    return chosen


def _pool(
    source: _ConfigurationSource,
    known: Sequence[Hypothesis],
    weights: NDArray[np.float64],
    count: int,
) -> list[Configuration]:
    """Return valid configurations, each with a likely condition in mind."""
    spoken = [_spoken_of(hypothesis, source.parameters) for hypothesis in known]
    minds = source.rng.choice(len(known), size=count, p=weights)
    made = (source.drawn(way, spoken[int(mind)]) for way, mind in enumerate(minds))
    return [settings for settings in made if settings is not None]


def _spoken_of(hypothesis: Hypothesis, parameters: Sequence[OperatorParameter]) -> list[str]:
    """Return the parameters that a condition speaks of."""
    words = {word for text in hypothesis.condition.texts for word in _NAMES.findall(text)}
    return [known.name for known in parameters if known.name in words]


@dataclass(frozen=True, slots=True)
class _ConfigurationSource:
    """Where configurations of one operator come from.

    Attributes:
        specification: the operator's declaration.
        type: the operator's type.
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
            settings = made(self, spoken)
            if self.specification.invalid(self.type, settings) is None:
                return settings
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


def _one_changed(source: _ConfigurationSource, _spoken: Sequence[str]) -> Configuration:
    """Return a failing configuration with one setting changed, sometimes two."""
    changes = 1 + int(source.rng.random() < 0.3)
    return _changed(source, source.parameters, changes)


def _spoken_changed(source: _ConfigurationSource, spoken: Sequence[str]) -> Configuration:
    """Return a failing configuration with a setting changed that a condition speaks of."""
    known = [other for other in source.parameters if other.name in spoken]
    return _changed(source, known or source.parameters, 1)


def _spoken_kept(source: _ConfigurationSource, spoken: Sequence[str]) -> Configuration:
    """Return fresh settings, and a failing model's where a condition speaks of them."""
    kept = source.chosen()
    return {**source.fresh(), **{name: kept[name] for name in spoken}}


def _mixed(source: _ConfigurationSource, _spoken: Sequence[str]) -> Configuration:
    """Return a failing configuration, a third of whose settings are fresh."""
    fresh, kept = source.fresh(), source.chosen()
    return {
        name: fresh[name] if source.rng.random() < 1 / 3 else setting
        for name, setting in kept.items()
    }


_WAYS: tuple[Callable[[_ConfigurationSource, Sequence[str]], Configuration], ...] = (
    _one_changed,
    _spoken_changed,
    _spoken_kept,
    _mixed,
    lambda source, _spoken: source.fresh(),
)


def _changed(
    source: _ConfigurationSource, parameters: Sequence[OperatorParameter], changes: int
) -> Configuration:
    changed: Configuration = source.chosen()
    for _ in range(changes if parameters else 0):
        parameter = parameters[int(source.rng.integers(len(parameters)))]
        setting = _other_setting(parameter, changed, source)
        if parameter.fault(setting) is not None:
            setting = parameter.draw(source.rng)
        other = {**changed, parameter.name: setting}
        changed = source.specification.adapted(source.type, other, parameter.name)
    return changed


def _other_setting(
    parameter: OperatorParameter, configuration: Configuration, source: _ConfigurationSource
) -> Setting:
    """Return another setting of a parameter: that of one of its unit, a near one, or any."""
    rng, setting = source.rng, configuration[parameter.name]
    kind = rng.random()
    if kind < 0.25 and parameter.unit:
        alike = [other.name for other in source.parameters if other.unit == parameter.unit]
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
