"""Hypotheses, and the measures of units against them, held to plain definitions and to laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.diagnose.inspect.hypotheses import (
    BUILT_IN_NAMES,
    built_in_hypotheses,
    commonest_pair,
    high_frequencies,
    hypothesis_values,
    load_hypotheses,
    telling,
    top_pair,
)
from edgeflare.diagnose.inspect.unit_measures import (
    CENTRES,
    INFLUENCES,
    MEASURES,
    Measure,
    Scores,
    as_they_are,
    hypothesis_targets,
    possible_limits,
    unit_forms,
)
from edgeflare.errors import UserError
from edgeflare.hypothesis import InspectedInput, UnitHypothesis
from edgeflare.statistics.influence import half_width, slope_influence
from edgeflare.statistics.standard_forms import doubled_ranks, standardized

seeds = st.integers(0, 2**32 - 1)


def drawn(seed: int, n: int = 60, units: int = 5) -> tuple[Scores, np.ndarray]:
    """Return units, of which some have ties or are constant, and hypotheses of several kinds."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, units)).astype(np.float32)
    values[:, 1] = np.maximum(values[:, 1], 0.0)
    values[:, 2] = 3.0
    said = np.column_stack([values[:, 0] + rng.normal(size=n) > 0.3, rng.normal(size=n)])
    said = np.column_stack([said, rng.integers(0, 3, n)])
    said[:2, 0] = (0.0, 1.0)
    said[:3, 2] = (0.0, 1.0, 2.0)
    return values, said.astype(np.float64)


def measured(measure: Measure, values: Scores, said: np.ndarray) -> Scores:
    forms, targets = unit_forms(values), hypothesis_targets(said)
    return np.asarray(MEASURES[measure](forms, targets, as_they_are(len(values)))[0])


@given(seeds)
def test_auc_is_the_part_of_pairs_in_which_the_held_one_is_greater(seed: int) -> None:
    values, said = drawn(seed)
    split = hypothesis_targets(said).split
    for h in range(said.shape[1]):
        one, other = values[split[:, h]][:, None], values[~split[:, h]][None]
        brute = ((one > other) + 0.5 * (one == other)).mean(axis=(0, 1))
        assert measured("auc", values, said)[h] == pytest.approx(brute, abs=1e-6)


@given(seeds)
def test_ranks_are_those_of_brute_force(seed: int) -> None:
    values, _ = drawn(seed)
    below = (values[None] < values[:, None]).sum(axis=1)
    above = (values[None] > values[:, None]).sum(axis=1)
    assert (doubled_ranks(values) == below - above).all()


@given(seeds)
def test_correlation_is_that_of_numpy(seed: int) -> None:
    values, said = drawn(seed)
    wanted = [[np.corrcoef(values[:, u], column)[0, 1] for u in (0, 1, 3, 4)] for column in said.T]
    found = measured("correlation", values, said)
    assert found[:, [0, 1, 3, 4]] == pytest.approx(np.array(wanted), abs=1e-5)
    assert (found[:, 2] == 0.0).all()


@given(seeds)
def test_mean_difference_is_cohens_d(seed: int) -> None:
    values, said = drawn(seed)
    split = hypothesis_targets(said).split[:, 0]
    one, other = values[split].astype(np.float64), values[~split].astype(np.float64)
    squares = ((one - one.mean(axis=0)) ** 2).sum(axis=0)
    squares += ((other - other.mean(axis=0)) ** 2).sum(axis=0)
    within = np.sqrt(squares / (len(values) - 2))
    within[2] = 1.0
    wanted = (one.mean(axis=0) - other.mean(axis=0)) / within
    assert measured("mean-difference", values, said)[0] == pytest.approx(wanted, abs=1e-3)


@given(seeds)
def test_mutual_information_is_that_of_the_table(seed: int) -> None:
    values, said = drawn(seed)
    forms, targets = unit_forms(values), hypothesis_targets(said)
    found = measured("mutual-information", values, said)
    for h in range(said.shape[1]):
        for u in range(values.shape[1]):
            joint = np.zeros((4, 4))
            np.add.at(joint, (forms.bins[:, u], targets.bins[:, h]), 1 / len(values))
            alone = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None]
            cells = joint > 0
            wanted = (joint[cells] * np.log2(joint[cells] / alone[cells])).sum()
            assert found[h, u] == pytest.approx(wanted, abs=1e-4)


@given(seeds, st.sampled_from(["auc", "mutual-information"]))
def test_monotone_maps_of_units_leave_measures_of_ranks(seed: int, measure: Measure) -> None:
    values, said = drawn(seed)
    mapped = np.exp(values / 4).astype(np.float32)
    if (doubled_ranks(mapped) == doubled_ranks(values)).all():  # rounding may make ties
        assert (measured(measure, mapped, said) == measured(measure, values, said)).all()


@given(seeds, st.sampled_from(list(CENTRES)))
def test_orders_deal_the_hypotheses_to_the_inputs(seed: int, measure: Measure) -> None:
    values, said = drawn(seed)
    orders = np.array([np.random.default_rng(seed + n).permutation(len(said)) for n in range(3)])
    found = MEASURES[measure](unit_forms(values), hypothesis_targets(said), orders)
    for order, scores in zip(orders, found, strict=True):
        assert scores == pytest.approx(measured(measure, values, said[order]), abs=1e-4)


@given(seeds, st.sampled_from(list(CENTRES)))
def test_a_constant_unit_has_nothing_to_do_with_anything(seed: int, measure: Measure) -> None:
    values, said = drawn(seed)
    assert measured(measure, values, said)[:, 2] == pytest.approx(CENTRES[measure], abs=1e-6)


def test_a_hypothesis_with_most_values_at_its_median_is_split_all_the_same() -> None:
    said = np.array([[0.0], [5.0], [5.0], [5.0]])
    assert hypothesis_targets(said).split[:, 0].tolist() == [False, True, True, True]
    assert standardized(np.full((3, 1), 0.1)).tolist() == [[0.0]] * 3


# Intervals of scores.

TRIALS = 300


def score(measure: Measure, unit: np.ndarray, said: np.ndarray) -> tuple[float, np.ndarray]:
    targets = hypothesis_targets(said[:, None])
    forms = unit_forms(unit[:, None].astype(np.float32))
    column: Any = {"correlation": targets.standard, "mutual-information": targets.bins}
    chosen = column.get(measure, targets.split)[:, 0].astype(np.float64)
    value = MEASURES[measure](forms, targets, as_they_are(len(unit)))[0, 0, 0]
    return float(value), INFLUENCES[measure](unit, chosen)


def related(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    unit = rng.normal(size=n)
    return unit, (unit + 1.5 * rng.normal(size=n) > 0).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("measure", list(INFLUENCES))
@pytest.mark.parametrize("times", [1, 4], ids=["single inputs", "groups of four copies"])
def test_intervals_cover(measure: Measure, times: int) -> None:
    rng = np.random.default_rng(0)
    truth = score(measure, *related(rng, 200_000))[0]
    held = 0
    for _ in range(TRIALS):
        unit, said = (np.repeat(one, times) for one in related(rng, 200))
        groups = np.repeat(np.arange(200), times)
        value, influence = score(measure, unit, said)
        assert influence.mean() == pytest.approx(0.0, abs=1e-9)
        held += abs(value - truth) <= half_width(influence, groups)
    assert held / TRIALS >= 0.9


def test_limits_stay_within_what_a_measure_can_be() -> None:
    assert possible_limits("auc", 0.98, 0.05) == (0.98 - 0.05, 1.0)
    assert possible_limits("mutual-information", 0.01, 0.02) == (0.0, 0.03)
    assert possible_limits("mean-difference", -3.0, 1.0) == (-4.0, -2.0)


def test_the_interval_of_a_share_covers_it() -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(TRIALS):
        own = rng.normal(0, np.sqrt(0.31), 200)
        errors = own + rng.normal(0, np.sqrt(0.69), 200)
        share = np.cov(own, errors)[0, 1] / errors.var(ddof=1)
        held += abs(share - 0.31) <= half_width(slope_influence(own, errors), np.arange(200))
    assert held / TRIALS >= 0.92


# The built-in hypotheses, on inputs of which the answer is known.


def test_each_says_what_its_name_says() -> None:
    image = np.array([[0, 255], [255, 0]], np.uint8)[:, :, None].repeat(2, 0).repeat(2, 1)
    one = InspectedInput(image, np.array([0.1, 0.5, 0.4]), np.array([0.1, 0.4, 0.5]), 1, 2, True)
    said = {made.name: made(one) for made in built_in_hypotheses((1, 2))}
    assert tuple(said) == BUILT_IN_NAMES
    assert said["deviates"] is True
    assert said["class pair"] is True
    tied = replace(one, deviates=False)  # as by a tie, where labels differ too
    assert built_in_hypotheses((1, 2))[0](tied) is False
    assert said["brightness"] == said["contrast"] == 127.5
    assert said["high frequencies"] == pytest.approx(2 / 3)  # of three neighbours one differs


def test_the_commonest_pair_has_no_order_and_ties_go_to_the_least() -> None:
    scores = [np.array(one) for one in ([3, 2, 1], [2, 3, 1], [1, 2, 3], [0, 2, 1])]
    assert top_pair(scores[1].astype(float)) == (0, 1)
    assert commonest_pair(scores) == (0, 1)
    assert top_pair(np.zeros(3)) == (0, 1)


@given(st.integers(0, 2**32), st.floats(0.1, 10), st.floats(-5, 5))
def test_high_frequencies_order_inputs_by_roughness(seed: int, by: float, add: float) -> None:
    """Brightness and contrast leave them."""
    rng = np.random.default_rng(seed)
    assert high_frequencies(np.linspace(0, 1, 400)) < 0.01
    assert high_frequencies(rng.normal(size=4000)) == pytest.approx(1.0, abs=0.15)
    assert high_frequencies(np.tile([0, 1], 200)) == pytest.approx(2.0, abs=0.02)
    assert high_frequencies(np.ones((8, 8, 3), np.uint8)) == 0.0
    assert high_frequencies(np.float32(3.0)) == 0.0
    image = rng.random((6, 5, 3))
    assert high_frequencies(image * by + add) == pytest.approx(high_frequencies(image))


ONE = InspectedInput(
    np.zeros((2, 2, 1), np.uint8), np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0, 1, True
)


def saying(value: Any, *, built_in: bool = False) -> UnitHypothesis:
    return UnitHypothesis("mine", lambda _: value, built_in)


def test_numbers_and_bools_are_rows_of_numbers() -> None:
    """A constant hypothesis is refused if the user asked for it."""
    said = [saying(value) for value in (True, 2, np.float32(0.5), np.bool_(False))]
    assert hypothesis_values(said, [ONE, ONE]).tolist() == [[1.0, 2.0, 0.5, 0.0]] * 2
    halves = [np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])]
    mixed = [saying(0), saying(0, built_in=True)]
    assert telling(mixed, halves).tolist() == [True, False]
    with pytest.raises(UserError, match="'mine' is constant over 2 inputs"):
        telling([saying(0), saying(0)], halves)


@pytest.mark.parametrize("value", [None, "1", float("nan"), float("inf"), 1j, np.ones(2)])
def test_what_is_no_finite_number_is_one_line(value: Any) -> None:
    with pytest.raises(UserError, match=r"hypothesis 'mine' returned .*a finite number or a bool"):
        hypothesis_values([saying(value)], [ONE])


@pytest.mark.parametrize("raising", [lambda _: 1 // 0, lambda _: 10**400])
def test_one_that_raises_is_one_line(raising: Any) -> None:
    with pytest.raises(UserError, match=r"hypothesis 'mine' failed: .*Error: "):
        hypothesis_values([UnitHypothesis("mine", raising)], [ONE])


HEAD = "from edgeflare.hypothesis import hypothesis\n"


def written(folder: Path, code: str, name: str = "mine.py") -> str:
    (folder / name).write_text(HEAD + code)
    return str(folder / name)


def declared(name: str, function: str = "f") -> str:
    return f'@hypothesis("{name}")\ndef {function}(one):\n    return 1.0\n'


def test_hypotheses_come_in_their_order_and_an_alias_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the working directory is found."""
    source = written(tmp_path, declared("one") + declared("two", "g") + "alias = f\n")
    assert [one.name for one in load_hypotheses([source])] == ["one", "two"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    written(tmp_path, declared("one"), "inspected_things.py")
    assert [one.name for one in load_hypotheses(["inspected_things"])] == ["one"]


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        (["def f(one):\n    return 1\n"], "has no hypothesis: decorate"),
        ([declared("a") + declared("a", "g")], "two hypotheses are named 'a'"),
        ([declared("a"), declared("a")], "two hypotheses are named 'a'"),
        ([declared("brightness")], "'brightness' is the name of a built-in"),
        ([declared(" ")], "a hypothesis is named ' '"),
        (["1 / 0\n"], "ZeroDivisionError"),
        ([None], "there is no Python file"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    tmp_path: Path, codes: list[str | None], said: str, refusal: Callable[..., str]
) -> None:
    sources = [
        str(tmp_path / "none.py") if code is None else written(tmp_path, code, f"file{at}.py")
        for at, code in enumerate(codes)
    ]
    assert said in refusal(load_hypotheses, sources)
