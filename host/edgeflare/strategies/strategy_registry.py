"""The strategies that are installed, by name: those of this package and those of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import EntryPoint

from edgeflare.class_registry import complaint, is_foreign, load_class
from edgeflare.core.input_space import Input
from edgeflare.errors import UserError, suggestion
from edgeflare.python_callable import reason
from edgeflare.strategies.search_contract import held_search, speaking_of
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy
from edgeflare.strategies.strategy_parameters import (
    Parameter,
    Value,
    known_parameter,
    parameters_of,
    read_assignments,
)
from edgeflare_operators import MutationOperator
from edgeflare_operators.entry_points import entry_points

ENTRY_POINTS = "edgeflare.strategies"
"""The group of entry points under which a package offers the classes of strategies."""

DISPLAY_ORDER = (
    *("boundary", "boundary-mh", "dflare", "dflare-d", "dflare-r", "dflare-published"),
    *("diffchaser", "donor", "climb", "random"),
    *("gradient", "deepxplore", "fgsm", "pgd"),
)
"""The strategies that are shown first; those of other packages follow by name."""


@dataclass(frozen=True, slots=True)
class RegisteredStrategy:
    """A strategy that can be chosen by name.

    Attributes:
        name: as users write it.
        strategy: the strategy's class.
        foreign: the entry point of another package that brings it; None for ours.

    """

    name: str
    strategy: type[Strategy]
    foreign: EntryPoint | None = None

    @property
    def summary(self) -> str:
        """One line that helps to choose."""
        return self.strategy.summary

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters."""
        return parameters_of(self.strategy)

    def read_parameters(self, assignments: Sequence[str]) -> Mapping[str, Value]:
        """Return the values of `--set NAME=VALUE`, checked."""
        values = read_assignments(assignments, self.name, self.parameters)
        self.create(values)  # for what only a combination of values breaks
        return values

    def require_choices(self, chooses: bool) -> None:
        """Refuse a strategy that follows decisions where a task gives none to choose from.

        Args:
            chooses: whether the task gives some; see `Answer`.

        """
        if self.strategy.needs_choices and not chooses:
            raise UserError(
                f"the strategy {self.name} follows decisions, and the task of this pair has none "
                "with a boundary between them: say --strategy climb"
            )

    def require_paper_operators(self, domain: str, operators: Sequence[MutationOperator]) -> None:
        """Refuse a strategy that draws from a paper's operators where a domain has none.

        Args:
            domain: name of the domain of the inputs.
            operators: the paper's for such inputs.

        """
        if self.strategy.needs_paper_operators and not operators:
            others = [
                name
                for name, strategy in strategies().items()
                if not strategy.strategy.needs_paper_operators
            ]
            raise UserError(
                f"the strategy {self.name} draws from the operators of its paper, which has none"
                f" for the domain {domain}: take one of the strategies {', '.join(others)}"
            )

    def create(self, values: Mapping[str, Value]) -> Strategy:
        """Return the strategy with these parameters; the others have their defaults.

        Raises:
            UserError: one is unknown, or not as it has to be.

        """
        for name in values:
            known_parameter(name, self.name, self.parameters)
        with self._speaking():
            return self.strategy(**values)

    def require(self, made: Strategy, seed: Input) -> None:
        """Refuse parameters that do not fit the inputs, of which `seed` is one."""
        with self._speaking():
            made.require(seed)

    def begin(self, made: Strategy, start: Start) -> SearchGenerator:
        """Return a new search; one of another package's strategy is held to what it must keep to.

        Args:
            made: what `create` returned.
            start: what the search begins with.

        """
        if self.foreign is None:
            return made.search(start)
        return held_search(made, start, partial(complaint, self.foreign, "strategy"))

    def _speaking(self) -> AbstractContextManager[None]:
        """Complain about the package whatever the strategy's own code raises, if it is foreign."""
        if self.foreign is None:
            return nullcontext()
        return speaking_of(partial(complaint, self.foreign, "strategy"))


@dataclass(frozen=True, slots=True)
class BrokenStrategy:
    """A strategy that is installed and cannot be used.

    Attributes:
        name: as users write it.
        complaint: what is wrong, and what mends it.

    """

    name: str
    complaint: str


def strategies() -> Mapping[str, RegisteredStrategy]:
    """Return the strategies that can be used, by name, in the order in which to show them."""
    loaded = {name: _loaded(name) for name in strategy_names()}
    return {name: one for name, one in loaded.items() if isinstance(one, RegisteredStrategy)}


def broken_strategies() -> Sequence[BrokenStrategy]:
    """Return the strategies that are installed and cannot be used."""
    broken, first = [], _first_entries()
    for entry in _entries():
        if first[entry.name] is not entry:
            why = "another package has a strategy of that name"
            broken.append(BrokenStrategy(entry.name, complaint(entry, "strategy", why)))
        elif isinstance(loaded := _loaded(entry.name), BrokenStrategy):
            broken.append(loaded)
    return broken


def strategy_names() -> tuple[str, ...]:
    """Return the names of all strategies in that order; none is imported, so some may be broken."""
    return tuple(_first_entries())


def pool_strategies() -> tuple[str, ...]:
    """Return the names of the strategies that draw from the run's operator pool."""
    known = strategies().values()
    return tuple(strategy.name for strategy in known if strategy.strategy.draws_from_pool)


def find_strategy(name: str) -> RegisteredStrategy:
    """Return the strategy of that name; no other is imported.

    Raises:
        UserError: there is none, or it cannot be used.

    """
    names = strategy_names()
    if name in names:
        found = _loaded(name)
        if isinstance(found, BrokenStrategy):
            raise UserError(found.complaint)
        return found
    if not names:
        raise UserError(f"no strategy is installed, not even '{name}': install edgeflare anew")
    known = strategies()
    hint = suggestion(name, known, "did you mean {!r}? ")
    raise UserError(f"unknown strategy '{name}'; {hint}There are {', '.join(known)}.")


def _first_entries() -> Mapping[str, EntryPoint]:
    """Return the entry points by name; of one name, the first."""
    first: dict[str, EntryPoint] = {}
    for entry in _entries():
        first.setdefault(entry.name, entry)
    return first


@cache
def _entries() -> Sequence[EntryPoint]:
    return tuple(_in_display_order(entry_points(group=ENTRY_POINTS)))


@cache
def _loaded(name: str) -> RegisteredStrategy | BrokenStrategy:
    """Return the strategy of an entry point, or what is wrong with it."""
    entry = _first_entries()[name]
    try:
        loaded = load_class(entry, "strategy", Strategy)
        _check_parameters(entry, loaded)
        return RegisteredStrategy(name, loaded, entry if is_foreign(entry) else None)
    except UserError as error:
        return BrokenStrategy(name, str(error))


def _in_display_order(entries: Iterable[EntryPoint]) -> list[EntryPoint]:
    """Return the entry points in display order; of one name, that of this package first."""
    place = {name: index for index, name in enumerate(DISPLAY_ORDER)}
    return sorted(
        entries,
        key=lambda entry: (
            place.get(entry.name, len(place)),
            entry.name,
            not entry.value.startswith("edgeflare."),
        ),
    )


def _check_parameters(entry: EntryPoint, strategy: type[Strategy]) -> None:
    """Refuse a strategy whose parameters are not as they have to be."""
    try:
        parameters_of(strategy)
        return
    except UserError as error:
        why = str(error)
    except Exception as error:  # whatever a foreign module's type hints raise
        why = f"it does not load ({reason(error)})"
    raise UserError(complaint(entry, "strategy", why))
