"""The grid of a bench: strategies × pairs × run seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edgeflare.errors import UserError, suggestion
from edgeflare.models.pair import Pair
from edgeflare.record.json_types import plain_json
from edgeflare.run.plan import Plan
from edgeflare.search.operator_pool import pool_names
from edgeflare.search.strategy_parameters import Value
from edgeflare.search.strategy_registry import find_strategy
from edgeflare.trust import KEPT_ONLY, Trust


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One campaign of a bench."""

    pair: Pair
    plan: Plan

    @property
    def run(self) -> Path:
        """The path of its run directory, relative to the bench's folder."""
        return Path(self.pair.folder_name) / f"{self.plan.strategy}-{self.plan.rng_seed}"


@dataclass(frozen=True, slots=True)
class Grid:
    """The settings of a bench, for every pair.

    Attributes:
        strategies: names of the strategies, each once.
        rng_seeds: the run seeds, each once; every strategy is run with each.
        baseline: the strategy that the others are compared with; one of them.
        plan: the settings of each campaign; strategy and run seed are replaced by those above.
        trust: the user's decision on the device's profile.
        parameters: the parameters that are set, by strategy; the plan's for one that is absent.
        only: the run that is made, by its path as `BenchRun` has it; None for all.

    """

    strategies: tuple[str, ...]
    rng_seeds: tuple[int, ...]
    baseline: str
    plan: Plan
    trust: Trust = KEPT_ONLY
    parameters: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    only: Path | None = None

    def __post_init__(self) -> None:
        _check_once("--strategy", self.strategies)
        _check_once("--rng-seeds", self.rng_seeds)
        for name in self.strategies:
            find_strategy(name)
        if self.baseline not in self.strategies:
            raise UserError(
                f"--baseline {self.baseline} is none of the strategies that are run: name one of "
                + ", ".join(self.strategies)
            )

    @property
    def device(self) -> str:
        """The device's name."""
        return self.plan.devices[0]

    def with_pool_of(self, domain: str) -> Grid:
        """Return the grid with the operators that its plan chooses from those of a domain.

        Raises:
            UserError: a name is unknown, or an installed package's operators do not load.

        """
        operators = pool_names(domain, self.plan.operators)
        return replace(self, plan=replace(self.plan, operators=operators))

    def with_only(self, run: str, pairs: Sequence[Pair]) -> Grid:
        """Return the grid with one of its campaigns alone.

        Args:
            run: path of its run directory, as `BenchRun` has it.
            pairs: all that the grid is run on.

        Raises:
            UserError: it has no such campaign.

        """
        known = [cell.run.as_posix() for pair in pairs for cell in self.cells(pair)]
        if run not in known:
            raise UserError(
                f"--only {run}: there is no such run{suggestion(run, known)}: name one of the"
                f" {len(known)}, such as {known[0]}"
            )
        return replace(self, only=Path(run))

    def cells(self, pair: Pair) -> Iterator[BenchRun]:
        """Yield the campaigns on a pair."""
        for strategy in self.strategies:
            plan = replace(
                self.plan,
                strategy=strategy,
                parameters=self.parameters.get(strategy, self.plan.parameters),
            )
            for rng_seed in self.rng_seeds:
                cell = BenchRun(pair, replace(plan, rng_seed=rng_seed))
                if self.only in (None, cell.run):
                    yield cell

    def to_json(self) -> dict[str, Any]:
        """Return the grid as plain JSON values."""
        plan = plain_json(self.plan)
        del plan["strategy"], plan["rng_seed"]
        if self.parameters:
            plan["parameters"] = {name: dict(set_) for name, set_ in self.parameters.items()}
        return {
            "strategies": list(self.strategies),
            "rng_seeds": list(self.rng_seeds),
            "baseline": self.baseline,
            "plan": plan,
        }


def check_pairs(pairs: Sequence[Pair]) -> None:
    """Refuse pairs whose runs would be in one folder, or cannot be compared.

    Raises:
        UserError: two pairs have the same name, or another domain or task.

    """
    _check_once("pairs by the name", [pair.folder_name for pair in pairs])
    first, *others = pairs
    for pair in others:
        for what, own, other in (
            ("domains", first.interface.domain_name, pair.interface.domain_name),
            ("tasks", first.interface.task, pair.interface.task),
        ):
            if own != other:
                raise UserError(
                    f"{first.name} and {pair.name} have different {what}, {own} and {other}, whose"
                    " figures cannot be compared: bench them apart"
                )


def _check_once(what: str, values: Sequence[object]) -> None:
    if not values:
        raise UserError(f"{what}: there is none; name at least one")
    for value, times in Counter(values).items():
        if times > 1:
            raise UserError(f"{what} {value}: named {times} times; name each once")
