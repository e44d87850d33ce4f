"""The result of a ranking: `rank.json`, schema `edgeflare.rank/v1`, and its table in Markdown.

`rank.schema.json` beside this file describes it; docs/rank.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgeflare import __version__
from edgeflare.bench.grid import Grid
from edgeflare.rank.rank_statistics import ModelComparison
from edgeflare.rank.rank_table import to_markdown
from edgeflare.rank.ranking import Ranked, Ranking
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes

SCHEMA = "edgeflare.rank/v1"


def write_ranking(
    ranking: Ranking,
    grid: Grid,
    runs: Mapping[str, Sequence[str]],
    sentences: Sequence[str],
    heading: str,
    out: Path,
) -> None:
    """Write `rank.json` and `rank.md`.

    Args:
        ranking: what came out.
        grid: what was asked.
        runs: the run directories of each model, by its name, relative to `out`.
        sentences: what the ranking says.
        heading: one line that says what was asked.
        out: the folder.

    """
    plan = grid.plan.to_json()
    for key in ("strategy", "rng_seed"):
        del plan[key]
    document = {
        "schema": SCHEMA,
        "edgeflare": __version__,
        "strategy": grid.plan.strategy,
        "rng_seeds": list(grid.rng_seeds),
        "budget": grid.plan.max_queries,
        "plan": plan,
        "seeds": ranking.seeds,
        "shared_seeds": list(ranking.shared_seeds),
        "models": [_model(one, runs[one.name]) for one in ranking.models],
        "comparisons": _comparisons(ranking),
        "sentences": list(sentences),
    }
    write_atomically(out / "rank.json", json_bytes(document))
    write_atomically(out / "rank.md", to_markdown(ranking, heading, sentences).encode())


def _model(one: Ranked, runs: Sequence[str]) -> dict[str, Any]:
    return {**asdict(one), "runs": list(runs)}


def _comparisons(ranking: Ranking) -> list[dict[str, Any]]:
    names = [model.name for model in ranking.models]
    by_area = {(one.first, one.second): _tested(one) for one in ranking.area_comparisons}
    return [
        {
            "first": names[one.first],
            "second": names[one.second],
            **_tested(one),
            "area": by_area.get((one.first, one.second)),
        }
        for one in ranking.comparisons
    ]


def _tested(one: ModelComparison) -> dict[str, Any]:
    """Return the figures of a comparison, without its models."""
    fields = asdict(one)
    del fields["first"], fields["second"]
    return {**fields, "significant": one.significant}
