"""The result of a ranking: `rank.json`, schema `edgeflare.rank/v1`, and its table in Markdown.

docs/rank.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from edgeflare.bench.grid import Grid
from edgeflare.pages.markdown import markdown_section
from edgeflare.pages.page import Section
from edgeflare.rank.ranking import ModelComparison, Ranked, Ranking
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.record.json_types import Count, CountFromOne, Share, plain_json
from edgeflare.statistics.bootstrap import Estimate
from edgeflare_protos import __version__


class RankedModel(Ranked, frozen=True, kw_only=True):
    """A compressed model.

    Attributes:
        runs: run directories, relative to this file, one for each run seed.

    """

    runs: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class TestedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """How two models differ on the same seeds.

    Attributes:
        difference: mean of the first less that of the second.
        effect: the difference over its standard deviation among the seeds; null where there is
            none.
        order_kept: share of the resamples that order the two as all seeds do; one half where all
            seeds order them not at all.
        p: two-sided p-value of a paired randomization test over the seeds.
        p_corrected: the same after Holm's correction for all comparisons.
        significant: whether that is below 0.05.

    """

    difference: Estimate
    effect: float | None
    order_kept: Share
    p: Share
    p_corrected: Share
    significant: bool


class ComparedModels(TestedDifference, frozen=True, kw_only=True):
    """Two models by queries, on the shared seeds.

    Attributes:
        first: name of the one with the more queries.
        second: name of the other.
        area: the same of the two models' areas, on all seeds; null where findings were not shrunk.

    """

    first: str
    second: str
    area: TestedDifference | None


class RankDocument(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="edgeflare.rank/v1"
):
    """A ranking of compressed models.

    Attributes:
        edgeflare: version that wrote the document.
        strategy: the search strategy of all runs.
        rng_seeds: run seeds; each model has a run with each.
        max_queries: the most queries of one search.
        plan: what each run was asked beside that, as in run.json.
        seeds: number of the seeds.
        shared_seeds: ids of those that deviate on none of the models: what the rank is made from.
        models: those with the most queries first.
        comparisons: comparisons of each model with each other.
        sentences: what it says and does not say.

    """

    edgeflare: str
    strategy: str
    rng_seeds: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
    max_queries: CountFromOne
    plan: Mapping[str, Any]
    seeds: Count
    shared_seeds: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]
    models: Annotated[tuple[RankedModel, ...], msgspec.Meta(min_length=2)]
    comparisons: Annotated[tuple[ComparedModels, ...], msgspec.Meta(min_length=1)]
    sentences: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


def write_ranking(
    ranking: Ranking,
    grid: Grid,
    runs: Mapping[str, Sequence[str]],
    sentences: Sequence[str],
    shown: Section,
    out: Path,
) -> None:
    """Write `rank.json` and `rank.md`.

    Args:
        ranking: what came out.
        grid: what was asked.
        runs: the run directories of each model, by its name, relative to `out`.
        sentences: what the ranking says.
        shown: the same for `rank.md`.
        out: the folder.

    """
    plan = plain_json(grid.plan)
    for key in ("strategy", "rng_seed"):
        del plan[key]
    document = RankDocument(
        edgeflare=__version__,
        strategy=grid.plan.strategy,
        rng_seeds=tuple(grid.rng_seeds),
        max_queries=grid.plan.max_queries,
        plan=plan,
        seeds=ranking.seeds,
        shared_seeds=ranking.shared_seeds,
        models=tuple(
            RankedModel(**msgspec.structs.asdict(model), runs=tuple(runs[model.name]))
            for model in ranking.models
        ),
        comparisons=_comparisons(ranking),
        sentences=tuple(sentences),
    )
    write_atomically(out / "rank.json", json_bytes(msgspec.to_builtins(document)))
    write_atomically(out / "rank.md", markdown_section(shown).encode())


def _comparisons(ranking: Ranking) -> tuple[ComparedModels, ...]:
    names = [model.name for model in ranking.models]
    by_area = {
        (area_comparison.first, area_comparison.second): TestedDifference(
            **_tested(area_comparison)
        )
        for area_comparison in ranking.area_comparisons
    }
    return tuple(
        ComparedModels(
            first=names[comparison.first],
            second=names[comparison.second],
            area=by_area.get((comparison.first, comparison.second)),
            **_tested(comparison),
        )
        for comparison in ranking.comparisons
    )


def _tested(comparison: ModelComparison) -> dict[str, Any]:
    """Return the figures of a comparison, without its models."""
    return {name: getattr(comparison, name) for name in TestedDifference.__struct_fields__}
