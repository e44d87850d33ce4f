"""The strategies that there are, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from edgeflare.errors import UserError
from edgeflare.search.boundary import boundary, boundary_mh
from edgeflare.search.dflare import dflare, dflare_d, dflare_r
from edgeflare.search.dflare_published import dflare_published
from edgeflare.search.diffchaser import diffchaser
from edgeflare.search.donor import donor
from edgeflare.search.random_walk import random_walk
from edgeflare.search.strategy import StrategyFunction
from edgeflare.suggestion import suggestion


@dataclass(frozen=True, slots=True)
class RegisteredStrategy:
    """A strategy that can be asked for.

    Attributes:
        name: as users write it.
        summary: one line for those who choose.
        tale: the strategy itself.

    """

    name: str
    summary: str
    tale: StrategyFunction

    @property
    def draws_from_pool(self) -> bool:
        """Whether it draws from the run's operator pool; if not, it names its own operators."""
        return self.name not in _OWN_OPERATORS


_OWN_OPERATORS = frozenset(
    {"dflare", "dflare-d", "dflare-r", "dflare-published", "diffchaser", "donor"}
)
"""Strategies that use the operators of their paper, or none: `donor` mixes two seeds."""

_ENTRIES = (
    RegisteredStrategy("boundary", "bisect to the decision boundary and follow it", boundary),
    RegisteredStrategy(
        "boundary-mh", "boundary, operators by Metropolis-Hastings (ablation)", boundary_mh
    ),
    RegisteredStrategy("dflare", "DFlare, Algorithms 1 and 2 as the paper writes them", dflare),
    RegisteredStrategy("dflare-d", "DFlare without state novelty (the paper's ablation)", dflare_d),
    RegisteredStrategy(
        "dflare-r", "DFlare with operators drawn uniformly (the paper's ablation)", dflare_r
    ),
    RegisteredStrategy(
        "dflare-published", "DFlare as its published code behaves", dflare_published
    ),
    RegisteredStrategy(
        "diffchaser", "a genetic baseline after DiffChaser's description", diffchaser
    ),
    RegisteredStrategy(
        "donor", "bisects towards a seed of another class; its triggers mix two images", donor
    ),
    RegisteredStrategy("random", "every operator as likely, every mutant accepted", random_walk),
)


def strategies() -> Mapping[str, RegisteredStrategy]:
    """Return the strategies by name, in the order in which to show them."""
    return MappingProxyType({entry.name: entry for entry in _ENTRIES})


def pool_strategies() -> tuple[str, ...]:
    """Return the names of the strategies that draw from the run's operator pool."""
    return tuple(entry.name for entry in _ENTRIES if entry.draws_from_pool)


def find_strategy(name: str) -> RegisteredStrategy:
    """Return the strategy of that name.

    Raises:
        UserError: there is none.

    """
    known = strategies()
    if name not in known:
        hint = suggestion(name, known, "did you mean {!r}? ")
        raise UserError(f"unknown strategy '{name}'; {hint}There are {', '.join(known)}.")
    return known[name]
