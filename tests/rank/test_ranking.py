from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.pages.page import Table
from edgeflare.rank.model_measurements import Labelled, ModelMeasurements
from edgeflare.rank.model_runs import CorrectCounts, ModelRuns
from edgeflare.rank.rank_section import ranking_section, sentences
from edgeflare.rank.ranking import (
    DRAWN,
    EXACT,
    SIGNIFICANT,
    Candidate,
    ModelComparison,
    Ranking,
    compare_all,
    places,
    randomization_test,
    rank,
    seeds_needed,
)
from edgeflare.run.seed_ids import SeedIds
from edgeflare.statistics.bootstrap import Values

BUDGET = 1000
SEEDS = 60
NAN = float("nan")
MEANS = {"hard": 300.0, "easy": 100.0}


def made(
    folder: Path,
    name: str,
    queries: NDArray[np.float64],
    deviating: set[int] = set(),  # noqa: B006 - never changed
    right: CorrectCounts | None = None,
    cut: int = 0,
    wrong: int = 2,
    rises: NDArray[np.float64] | None = None,
) -> Candidate:
    path = folder / f"{name}.tflite"
    path.write_bytes(name.encode())
    pair = Pair(name, None, path, path)
    searched = ModelRuns(
        seeds=SeedIds.first(len(queries)),
        searched=frozenset(range(len(queries))) - deviating,
        tied=0,
        right=right,
        queries=queries.reshape(len(queries), -1),
        seconds=np.zeros((len(queries), 1)),
        strengths=(0.25,),
        rises=None if rises is None else rises.reshape(len(queries), -1),
        cut_by_time=cut,
    )
    labelled = Labelled(100, wrong, 0, right) if right else None
    return Candidate(pair, ModelMeasurements(path.stat().st_size, 0.5, 201, labelled), searched)


Make = Callable[..., Candidate]


@pytest.fixture
def candidate(tmp_path: Path) -> Make:
    """Return what makes a candidate of a name, its queries, and what else `made` takes."""
    return partial(made, tmp_path)


def ranked(*candidates: Candidate) -> Ranking:
    return rank(candidates, BUDGET)


def said_of(ranking: Ranking) -> str:
    return " ".join(sentences(ranking, "dflare", BUDGET))


def spread(mean: float) -> NDArray[np.float64]:
    return mean + np.random.default_rng(int(mean)).uniform(-20.0, 20.0, SEEDS)


def test_a_search_that_found_nothing_counts_with_its_whole_budget(candidate: Make) -> None:
    # Of the findings alone the means would be 10 and 400: the worst model would come first.
    never = np.full(SEEDS, NAN)
    never[:6] = 10.0
    ranking = ranked(candidate("weak", spread(400.0)), candidate("strong", never))
    strong, weak = ranking.models
    assert (strong.name, strong.rank) == ("strong", 1)
    assert (weak.name, weak.rank) == ("weak", 2)
    assert strong.mean_queries.value == pytest.approx((6 * 10 + 54 * BUDGET) / 60)
    assert strong.success_rate.value == 0.1
    said = said_of(ranking)
    assert "strong is hardest to make deviate" in said
    assert "54 of 60 of strong" in said
    assert "strong over weak" in said


def test_only_seeds_that_deviate_on_no_model_are_compared(candidate: Make) -> None:
    first, second = spread(100.0), spread(101.0)
    # Were they compared, these seeds would decide.
    first[:5], second[:5] = BUDGET, NAN
    ranking = ranked(candidate("a", first), candidate("b", second, deviating={0, 1, 2, 3, 4}))
    assert ranking.shared_seeds == tuple(range(5, SEEDS))
    by_name = {one.name: one for one in ranking.models}
    assert by_name["b"].deviating_seeds == 5
    assert by_name["b"].deviation_rate.value == pytest.approx(5 / 60)
    assert by_name["a"].searches == 55
    assert by_name["a"].success_rate.value == 1.0
    assert by_name["a"].success_rate.low == pytest.approx(0.935, abs=0.001)
    assert {one.rank for one in ranking.models} == {1}
    said = said_of(ranking)
    assert "Nothing is significant" in said
    assert "some deviate unmutated" in said
    assert "b on 5" in said


def test_seeds_of_which_none_is_left_are_refused(candidate: Make) -> None:
    half = set(range(30))
    with pytest.raises(UserError, match=r"each seed deviates already.*more seeds"):
        ranked(
            candidate("a", spread(100.0), deviating=half),
            candidate("b", spread(100.0), deviating=set(range(SEEDS)) - half),
        )


def test_one_seed_tells_nothing_and_says_so(candidate: Make) -> None:
    few = [
        candidate(name, spread(mean)[:count])
        for count in (1, 6)
        for name, mean in ((f"hard{count}", 900.0), (f"easy{count}", 100.0))
    ]
    alone = ranked(*few[:2])
    assert [one.rank for one in alone.models] == [1, 1]
    said = said_of(alone)
    assert "Nothing is significant" in said
    assert "on the 1 seed on which all of them agree" in said
    assert "With 1 seed nothing can be significant: 1 comparison takes at least 6; raise" in said
    six = ranked(*few[2:])
    assert [one.rank for one in six.models] == [1, 2]
    said = said_of(six)
    assert "can be significant" not in said
    assert "on the mean, by dflare, on the 6 seeds on which" in said


def test_equal_models_share_their_place_in_the_order_of_their_naming(candidate: Make) -> None:
    never = np.full(SEEDS, NAN)
    ranking = ranked(*(candidate(name, never) for name in ("b", "a")))
    assert [(one.name, one.rank) for one in ranking.models] == [("b", 1), ("a", 1)]
    said = said_of(ranking)
    assert "the same queries from every seed" in said
    assert "Nothing was found on a: with 95 % confidence at most 6.0%" in said


def test_all_generators_count(candidate: Make) -> None:
    both = np.stack([spread(100.0), np.full(SEEDS, NAN)], axis=1)
    others = np.stack([spread(200.0)] * 2, axis=1)
    ranking = ranked(candidate("a", both), candidate("b", others))
    assert ranking.models[0].name == "a"
    assert ranking.models[0].mean_queries.value == pytest.approx(550.0, abs=10.0)
    assert ranking.models[0].searches == 120
    assert ranking.models[0].findings == 60


def test_accuracy_and_what_the_clock_decided_are_said(candidate: Make) -> None:
    ranking = ranked(
        candidate("a", spread(100.0), right=CorrectCounts(50, 45, 44)),
        candidate("b", spread(300.0), right=CorrectCounts(50, 45, 40), cut=3),
    )
    first = ranking.models[0]
    assert first.seed_accuracy is not None
    assert first.seed_accuracy.value == 0.8
    assert first.labelled_deviation_rate is not None
    assert first.labelled_deviation_rate.value == 0.02
    said = said_of(ranking)
    assert "Accuracy on the 50 labelled seeds: 80.00% to 88.00%, the original 90.00%" in said
    assert "The time limit ended searches of b" in said


def test_accuracy_on_what_each_model_answered_is_said_of_as_many(candidate: Make) -> None:
    said = said_of(
        ranked(
            candidate("a", spread(100.0), right=CorrectCounts(50, 45, 44)),
            candidate("b", spread(300.0), right=CorrectCounts(40, 40, 30)),
        )
    )
    assert "Accuracy on the 40 to 50 labelled seeds: 75.00% to 88.00%, the original 90.00%" in said
    assert "90.00% to 100.00%." in said


def test_what_the_labelled_set_tells_otherwise_is_said(candidate: Make) -> None:
    right = CorrectCounts(100, 90, 88)
    ranking = ranked(
        candidate("hard", spread(300.0), right=right, wrong=40),
        candidate("easy", spread(100.0), right=right, wrong=2),
        candidate("easy too", spread(100.0), right=right, wrong=20),
    )
    said = sentences(ranking, "dflare", BUDGET)
    silent = "Told apart by deviations on the labelled set, not by queries: "
    assert silent + "easy 2.00% and easy too 20.00%." in said
    contrary = "Deviations on the labelled set say the contrary of queries: "
    (line,) = [one for one in said if one.startswith(contrary)]
    assert "hard 40.00% and easy 2.00%" in line


def test_only_columns_that_are_shown_are_explained(candidate: Make) -> None:
    def note(right: CorrectCounts | None) -> str:
        models = [candidate(name, spread(mean), right=right) for name, mean in MEANS.items()]
        (table,) = (
            block for block in ranking_section(ranked(*models), "", []).blocks
            if isinstance(block, Table)
        )  # fmt: skip
        return table.note

    assert "Right: accuracy. Set: the labelled one. KB: " in note(CorrectCounts(100, 90, 88))
    assert "unmutated. KB: the file." in note(None)
    assert "Area" not in note(None)


def test_models_that_are_not_told_apart_stand_together(candidate: Make) -> None:
    # Each is near its neighbours alone: the first and the last of five are told apart.
    means = (300.0, 200.0, 199.0, 198.0, 100.0)
    names = ("a", "b", "c", "d", "e")
    ranking = ranked(*map(candidate, names, map(spread, means)))
    (line,) = [one for one in sentences(ranking, "dflare", BUDGET) if one.startswith("Not ")]
    together = line.partition(": ")[2].partition(" (p at least")[0]
    assert sorted(together.replace(" and ", ", ").split(", ")) == ["b", "c", "d"]
    (other,) = [one for one in sentences(ranking, "dflare", BUDGET) if one.startswith("Signif")]
    assert "a over " in other
    assert " over e" in other


def test_models_between_two_groups_stand_in_both(candidate: Make) -> None:
    models = [candidate(name, spread(504.0 - at)) for at, name in enumerate("abcd")]
    ranking = ranked(*models)
    ps = {(0, 3): 0.01, (1, 2): 0.06}
    comparisons = [
        replace(one, p_corrected=ps.get((one.first, one.second), 0.2))
        for one in ranking.comparisons
    ]
    said = said_of(replace(ranking, comparisons=tuple(comparisons)))
    a, b, c, d = (model.name for model in ranking.models)
    assert f": {a}, {b} and {c} (p at least 0.06); {b}, {c} and {d} (p at least 0.06)." in said


def near(level: float) -> NDArray[np.float64]:
    return level + np.random.default_rng(1).uniform(-0.05, 0.05, SEEDS)


def test_the_area_is_compared_on_all_seeds_and_decides_no_place(candidate: Make) -> None:
    rises = near(0.8)
    rises[:5] = 1.0
    ranking = ranked(
        candidate("far", spread(100.0), rises=near(0.3)),
        candidate("near", spread(300.0), deviating={0, 1, 2, 3, 4}, rises=rises),
    )
    first, second = ranking.models
    assert [(one.name, one.rank) for one in ranking.models] == [("near", 1), ("far", 2)]
    assert first.area is not None
    assert first.area.value == pytest.approx(rises.mean())
    assert first.area.low < first.area.value < first.area.high
    assert second.area is not None
    (one,) = ranking.area_comparisons
    assert one.difference.value == pytest.approx(first.area.value - second.area.value)
    assert one.significant
    said = sentences(ranking, "dflare", BUDGET)
    assert "Significant by area, the contrary of queries: far over near." in said
    (line,) = [one for one in said if one.startswith("Area, ")]
    assert line == (
        f"Area, on all 60 seeds: from far with {second.area.value:.3f} to near with "
        f"{first.area.value:.3f}. Significant by area: 1 of 1 comparison; by queries: 1."
    )


def test_what_one_measure_tells_and_the_other_does_not_is_said(candidate: Make) -> None:
    ranking = ranked(
        candidate("hard", spread(300.0), rises=near(0.5)),
        candidate("easy", spread(100.0), rises=near(0.5)),
        candidate("near", spread(100.0), rises=near(0.7)),
    )
    said = sentences(ranking, "dflare", BUDGET)
    assert "Significant by area, not by queries: easy over near." in said
    assert "Significant by queries, not by area: hard over easy." in said
    assert not any("the contrary of queries" in line for line in said)


def test_findings_that_one_model_has_not_shrunk_leave_the_area_out(candidate: Make) -> None:
    ranking = ranked(candidate("a", spread(100.0), rises=near(0.5)), candidate("b", spread(300.0)))
    assert ranking.area_comparisons == ()
    assert {one.name: one.area is None for one in ranking.models} == {"a": False, "b": True}
    said = said_of(ranking)
    assert "The area is left out: with --shrink 0" in said


def test_few_seeds_that_agree_may_be_enough_for_the_area(candidate: Make) -> None:
    # Three comparisons take seven seeds: all of them are there, but five of them agree.
    ranking = ranked(
        *(
            candidate(name, spread(mean)[:7], deviating={0, 1}, rises=near(level)[:7])
            for name, mean, level in (("a", 900.0, 0.1), ("b", 500.0, 0.4), ("c", 100.0, 0.8))
        )
    )
    assert all(one.significant for one in ranking.area_comparisons)
    said = said_of(ranking)
    assert "With 5 seeds no difference in queries can be significant: 3 comparisons" in said


LEVEL = 0.05

NULLS = 4000
"""Comparisons of alike models: the share of false alarms errs by .01 at the most (3σ)."""


def searches(*means: float, seeds: int = 60, spread: float = 10.0) -> Values:
    """Queries of models whose searches differ by a constant, from seeds that differ much more."""
    rng = np.random.default_rng(0)
    hardness = rng.exponential(300.0, seeds)
    return np.stack([(hardness + mean + rng.normal(0.0, spread, seeds))[:, None] for mean in means])


def only(values: Values) -> ModelComparison:
    (comparison,) = compare_all(values)
    return comparison


def test_a_small_difference_on_the_same_seeds_is_seen_through_their_own_spread() -> None:
    comparison = only(searches(20.0, 0.0))
    assert comparison.significant
    assert comparison.difference.low > 0.0
    assert comparison.difference.value == pytest.approx(20.0, abs=4.0)
    assert comparison.effect is not None
    assert comparison.effect > 1.0
    assert comparison.order_kept == 1.0


def test_the_same_difference_on_other_seeds_is_not() -> None:
    values = searches(20.0, 0.0)
    values[1] = values[1, np.random.default_rng(1).permutation(60)]
    comparison = only(values)
    assert not comparison.significant
    assert comparison.order_kept < 0.9


def test_equal_searches_are_never_told_apart() -> None:
    values = searches(0.0)
    comparison = only(np.concatenate([values, values]))
    assert (comparison.p, comparison.p_corrected) == (1.0, 1.0)
    assert comparison.effect is None
    assert comparison.order_kept == 0.5
    assert places([1.0, 1.0], [comparison]) == [1, 1]


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_fewer_than_six_seeds_tell_no_models_apart(seeds: int) -> None:
    values = np.stack([np.full((seeds, 1), 1000.0), np.full((seeds, 1), 1.0)])
    assert only(values).p == 2.0 ** (1 - seeds)
    assert not only(values).significant


@pytest.mark.parametrize(("comparisons", "seeds"), [(1, 6), (2, 7), (3, 7), (15, 10), (190, 13)])
def test_the_fewest_seeds_that_can_tell_models_apart(comparisons: int, seeds: int) -> None:
    assert seeds_needed(comparisons) == seeds
    least = randomization_test(np.ones((1, seeds)))
    assert (
        least[0] * comparisons
        < SIGNIFICANT
        <= randomization_test(np.ones((1, seeds - 1)))[0] * comparisons
    )


def test_generators_of_one_seed_are_no_further_seeds() -> None:
    values = searches(4.0, 0.0, seeds=15)
    repeated = np.repeat(values, 10, axis=2)
    assert only(repeated).p == only(values).p
    assert only(repeated).difference.low == pytest.approx(only(values).difference.low)


def test_who_is_first_does_not_change_what_is_significant() -> None:
    values = searches(20.0, 0.0, 1.0)
    forth = {(one.first, one.second): one for one in compare_all(values)}
    for one in compare_all(values[::-1]):
        other = forth[2 - one.second, 2 - one.first]
        assert one.difference.value == pytest.approx(-other.difference.value)
        assert one.p == other.p
        assert one.significant == other.significant


def test_a_place_is_one_and_the_models_that_are_significantly_harder() -> None:
    values = searches(40.0, 39.5, 0.0, -40.0)
    means = values.mean(axis=(1, 2)).tolist()
    assert places(means, compare_all(values)) == [1, 1, 3, 4]


def alike(seeds: int) -> NDArray[np.float64]:
    """Differences of models that are alike, as skewed as queries are: a budget cuts some off."""
    rng = np.random.default_rng(2)
    queries = np.minimum(rng.exponential(100.0, (2, NULLS, seeds)).round(), 300.0)
    differences: NDArray[np.float64] = queries[0] - queries[1]
    return differences


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [5, 6, 14, 15])
def test_chance_alone_is_called_significant_no_oftener_than_it_should(seeds: int) -> None:
    ps = np.array(randomization_test(alike(seeds)))
    alarms = np.mean(ps < LEVEL)
    if seeds < 6:
        assert alarms == 0.0
    else:
        assert alarms <= 0.06
    if seeds >= 10:
        assert alarms >= 0.035, "it is not bought with a test that sees nothing"
        assert ps.mean() == pytest.approx(0.5, abs=0.03)


def test_what_is_drawn_is_near_what_is_exact() -> None:
    rng = np.random.default_rng(3)
    for seeds in (4, 14):
        few = rng.normal(30.0, 60.0, (5, seeds))
        # As few that tell something, but too many that differ for all exchanges to be counted.
        many = np.concatenate([few, np.full((5, EXACT), 1e-12)], axis=1)
        assert randomization_test(many) == pytest.approx(randomization_test(few), abs=0.015)


def test_the_share_of_exchanges_by_hand() -> None:
    # Of 8 exchanges, +++ and --- lead to a sum of 6; 3 and 1 + 2 to one of 0.
    assert randomization_test(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, -3.0]])) == [0.25, 1.0]


def test_a_seed_that_does_not_differ_tells_nothing() -> None:
    few = np.array([[5.0, 5.0, 5.0, 5.0, 5.0]])
    padded = np.concatenate([few, np.zeros((1, 100))], axis=1)
    assert randomization_test(padded) == randomization_test(few) == [2 / 32]


@pytest.mark.parametrize("seeds", [10, 20, 60])
def test_a_clear_difference_is_seen_with_few_seeds(seeds: int) -> None:
    rng = np.random.default_rng(4)
    clear = rng.normal(20.0, 10.0, (200, seeds))
    assert np.mean(np.array(randomization_test(clear)) < LEVEL) > 0.99


def test_none_of_many_seeds_makes_p_nothing() -> None:
    assert randomization_test(np.ones((1, 500))) == [1 / (DRAWN + 1)]
    # 20 models: the least p is below .05 after Holm's correction.
    assert 190 / (DRAWN + 1) < LEVEL
