"""What a campaign is asked to do: everything but the models, the seeds and the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from math import isfinite, sqrt
from typing import Annotated, Any, Literal

import msgspec

from edgeflare.core.bounds import Bounds
from edgeflare.core.domain import Domain
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import InputSpace
from edgeflare.core.seeds import SeedChoice
from edgeflare.errors import UserError
from edgeflare.record.json_types import Amount, Count, Number, read_text
from edgeflare.record.request import Option, option_of
from edgeflare.run.seed_ids import SeedIds
from edgeflare.strategies.operator_pool import BUILT_IN
from edgeflare_protos.kernel_sets import TFLiteKernels

STRENGTHEN = 300
"""Queries for each finding, where a least strength is asked for: see `--min-strength`."""

SHRINK = 600
"""Queries for each finding, unless told otherwise. On 60 seeds of the LeNets of MNIST, where
findings lie farthest, 600 end .7 and .6 dB of PSNR short of what 1,000 reach, 500 1.3 and .7."""

Refine = Literal["all", "shown", "gate"]
"""Which findings are refined, and when that of one ends: see `Plan.refine`."""

ShrinkBy = Literal["queries", "gradient"]
"""How the way to the seed is found: see `Plan.shrink_by`."""

SHOWN = 12
"""Findings that a report shows first, before it says how many more there are."""

Default = Literal["default"]
"""Stands for what the domain of the pair has as default, until the pair is known."""

MAX_QUERIES = 3000
"""Queries for each seed: several times what the published loop needs for a strict trigger on
LeNets, and an end for seeds that have none."""

MAX_TIME_SECONDS = 180.0
"""Seconds for each seed: the paper's time limit (§4.4)."""

_WHOLE = ("limit", "first", "max_queries", "total_queries")
_SECONDS = ("max_time_seconds", "time_limit_seconds")
_OPEN = ("limit", "first", "total_queries", "time_limit_seconds")
"""Bounds that need not be set."""


def _set_parameters(parameters: Mapping[str, bool | int | float | str]) -> str | None:
    return " --set ".join(f"{name}={value}" for name, value in sorted(parameters.items())) or None


def _version(version: int) -> str:
    return f"version {version}"


def _thresholds(coverage: Sequence[Number]) -> str | None:
    return ",".join(f"{threshold:g}" for threshold in coverage) or None


@dataclass(frozen=True, slots=True)
class Plan:
    """What decides the results of a campaign, beside the pair and the devices themselves.

    Attributes:
        strategy: name of the search strategy.
        parameters: the strategy's parameters that are set, by name; the others have their defaults.
        strategy_version: version of the strategy, by which other queries may follow from the same
            seeds; that of the installation once the pair is known.
        goal: what counts as a finding.
        devices: the devices' names; seeds are given to them by index.
        rng_seed: the run seed; each chain's generator derives from it and from its seed's id.
        limit: take so many seeds only, of each label its share; null for all. See `SeedChoice`.
        first: take the first so many seeds only; null for all.
        max_queries: queries that one chain may spend.
        max_time_seconds: seconds of evaluation that one chain may spend.
        total_queries: queries that all chains together may spend; null for no bound.
        time_limit_seconds: seconds of wall time that the search may take; null for no bound.
        ensemble: kernel sets of the host that the compressed model runs under: the twin's own
            first, then further members; empty until the pair is known and the default chosen.
        elsewhere: further members of the ensemble, which no kernel set of the host is:
            "KERNELS@PYTHON" or "KERNELS@VERSION", which another runtime runs, or "dequantized".
        max_linf: levels that one value of a mutant may differ from its seed; null for no bound.
        max_l2: Euclidean distance in levels that a mutant may have from its seed; null for no
            bound.
        strengthen: queries that making one finding stronger may take; 0 to leave it. It ends where
            `min_strength` is reached, if there is one.
        shrink: queries that bringing one finding nearer to its seed may take; 0 to leave it.
        shrink_by: "queries" estimates the gradient of the original's scores from answers;
            "gradient" has it from a translation of the original, which needs the extra whitebox.
        refine: "all" spends all queries of `shrink` on each finding, "shown" on the `SHOWN` that
            matter most, by harm and then by strength, and none on the others; "gate" ends with
            each as soon as it is as near as `within` asks.
        min_strength: strength below which a finding does not count once it was strengthened; the
            search does not look at it.
        within_db: nearness in dB to its seed, by the measure of the domain, below which a finding
            does not count once it was shrunk; null for any distance. The search does not look at
            it.
        operators: names of the mutation operators that the search draws from, in their order; until
            the pair is known also of sets of them, such as the built-in ones. Strategies that
            follow a paper have operators of their own.
        coverage: thresholds at which neuron coverage is measured at the end; none to leave it.
        seed_ids: the seeds that are searched; null for all.

    """

    strategy: str
    goal: Goal
    devices: Annotated[tuple[str, ...], Option("--device", ", ".join)]
    rng_seed: Count = 0
    limit: int | None = None
    first: int | None = None
    max_queries: int = MAX_QUERIES
    max_time_seconds: Annotated[Amount, Option("--max-time")] = MAX_TIME_SECONDS
    total_queries: int | None = None
    time_limit_seconds: Annotated[Amount | None, Option("--time-limit")] = None
    ensemble: Annotated[tuple[TFLiteKernels, ...], Option("--ensemble", ",".join)] = ()
    elsewhere: Annotated[tuple[str, ...], Option("--ensemble", ",".join)] = ()
    max_linf: Amount | Default | None = "default"
    max_l2: Amount | Default | None = "default"
    strengthen: Count = 0
    shrink: Count = 0
    shrink_by: ShrinkBy = "queries"
    refine: Refine = "all"
    min_strength: Number = 0.0
    within_db: Annotated[Number | Default | None, Option("--within")] = None
    operators: Annotated[tuple[str, ...], Option("--operators", ",".join)] = (BUILT_IN,)
    parameters: Annotated[
        Mapping[str, bool | int | float | str], Option("--set", _set_parameters)
    ] = field(default_factory=dict)
    strategy_version: Annotated[int, Option("--strategy", _version)] = 1
    coverage: Annotated[tuple[Amount, ...], Option("--coverage", _thresholds)] = ()
    seed_ids: SeedIds | None = None

    def __post_init__(self) -> None:
        """Refuse bounds within which nothing would be searched.

        Raises:
            UserError: one is not above 0, or not a number, or not a whole one where it counts.

        """
        if not (isfinite(self.min_strength) and 0.0 <= self.min_strength <= 1.0):
            raise UserError(
                f"min_strength={self.min_strength!r}: expected a number from 0 to 1 "
                "(--min-strength)"
            )
        within = 0.0 if self.within_db in (None, "default") else self.within_db
        if not (isinstance(within, (int, float)) and isfinite(within) and within >= 0.0):
            raise UserError(
                f"within={self.within_db!r}: expected a PSNR in dB, or the measure of the pair's "
                "domain, 0 or more (--within)"
            )
        self._require_bounds()
        if self.refine == "gate" and self.within_db is None:
            raise UserError(
                "--refine gate brings findings as near as --within asks, and --within none asks"
                " for no distance: give --within DB"
            )
        if self.shrink_by == "gradient" and self.goal.find is Find.KERNEL:
            raise UserError(
                "--shrink-by gradient follows the original's gradient, and --find kernel compares"
                " the kernels of the compressed model, of which no gradient knows: say --shrink-by"
                " queries"
            )
        if self.limit is not None and self.first is not None:
            raise UserError(
                f"--limit {self.limit} takes of each label its share, and --first {self.first} the"
                " beginning of the seeds: give one of them"
            )
        if self.seed_ids is not None and self.refine == "shown":
            raise UserError(
                "--refine shown chooses among all findings, which a search of some seeds"
                " (--seed-ids) does not know: say --refine all"
            )
        if self.seed_ids is not None and self.total_queries is not None:
            raise UserError(
                "--total-queries is shared out among all seeds, so a search of some (--seed-ids)"
                " cannot know its share: bound each seed with --max-queries"
            )

    def _require_bounds(self) -> None:
        """Refuse a number that is not above 0, or not whole where it counts; raises UserError."""
        for key in (*_WHOLE, *_SECONDS):
            bound = getattr(self, key)
            if bound is None and key in _OPEN:
                continue
            kinds = int if key in _WHOLE else (int, float)
            is_number = isinstance(bound, kinds) and not isinstance(bound, bool)
            if not (is_number and isfinite(bound) and bound > 0):
                what = "whole number of 1 or more" if key in _WHOLE else "number of seconds above 0"
                option = option_of(Plan, key)
                name = option.removeprefix("--").replace("-", "_")
                raise UserError(f"{name}={bound!r}: expected a {what} ({option})")

    def settled(
        self,
        ensemble: tuple[TFLiteKernels, ...],
        size: int,
        operators: tuple[str, ...],
        domain: Domain,
    ) -> Plan:
        """Return the plan with what depends on the pair filled in.

        Args:
            ensemble: what was opened.
            size: number of values of an input.
            operators: names of the operators of the pool.
            domain: domain of the inputs, which has the defaults.

        """
        rms = domain.default_rms
        return replace(
            self,
            ensemble=ensemble,
            max_linf=_chosen(self.max_linf, domain.default_linf),
            max_l2=_chosen(self.max_l2, None if rms is None else rms * sqrt(size)),
            within_db=_chosen(self.within_db, domain.nearness_measure.within),
            operators=operators,
        )

    @property
    def choice(self) -> SeedChoice:
        """Which of the pair's seeds are taken."""
        return SeedChoice(self.limit, self.first)

    @property
    def members(self) -> tuple[str, ...]:
        """The members of the twin's ensemble beside itself, by name."""
        return (*self.ensemble[1:], *self.elsewhere)

    def bounds(self, space: InputSpace) -> Bounds:
        """Return how far a mutant may be from its seed; of a settled plan."""
        if self.max_linf == "default" or self.max_l2 == "default":
            raise ValueError("the plan is not settled")
        return Bounds(self.max_linf, self.max_l2, space)

    @property
    def most_refinement_queries(self) -> int:
        """The most queries that refining one finding may take; 0 where none is refined.

        The first of them shows whether it still is a finding.
        """
        return 1 + self.strengthen + self.shrink if self.strengthen or self.shrink else 0

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Plan:
        """Return the plan that `plain_json` described.

        Raises:
            UserError: it asks for what no plan may.
            ValueError: a value is of another type, or missing; names it.

        """
        goal = fields["goal"]
        for known, given in ((cls, fields), (Goal, goal)):
            if unknown := given.keys() - {
                dataclass_field.name for dataclass_field in dataclass_fields(known)
            }:
                raise ValueError(f"no plan has {', '.join(sorted(unknown))}")
        return msgspec.convert(fields, cls, dec_hook=read_text)


def default_strengthen(min_strength: float) -> int:
    """Return the queries that strengthening one finding takes unless told otherwise."""
    return STRENGTHEN if min_strength else 0


def _chosen(asked: float | Default | None, default: float | None) -> float | None:
    return default if asked == "default" else asked
