"""What a campaign is asked to do: everything but the models, the seeds and the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from edgeflare.search.goal import Find, Goal

MAX_QUERIES = 3000
"""For each seed: several times what the published loop needs for a strict trigger on LeNets, and
an end for seeds that have none."""

TIME_LIMIT_SECONDS = 180.0
"""For each seed: the paper's time limit (§4.4)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What decides the results of a campaign, beside the pair and the devices themselves.

    Attributes:
        strategy: name of the search strategy.
        goal: what counts as a finding.
        devices: the devices' names; seeds are given to them by index.
        rng_seed: the run seed; each chain's generator derives from it and from its seed's id.
        limit: search the first so many seeds only; None for all.
        max_queries: queries that one chain may spend.
        time_limit: seconds of evaluation that one chain may spend.
        total_queries: queries that all chains together may spend; None for no bound.
        total_time: seconds of wall time that the search may take; None for no bound.

    """

    strategy: str
    goal: Goal
    devices: tuple[str, ...]
    rng_seed: int = 0
    limit: int | None = None
    max_queries: int = MAX_QUERIES
    time_limit: float = TIME_LIMIT_SECONDS
    total_queries: int | None = None
    total_time: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        fields = asdict(self)
        fields["devices"] = list(self.devices)
        fields["goal"]["find"] = self.goal.find.value
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Plan:
        """Return the plan that `to_json` described."""
        goal = dict(fields["goal"])
        goal["find"] = Find(goal["find"])
        return cls(**{**fields, "goal": Goal(**goal), "devices": tuple(fields["devices"])})
