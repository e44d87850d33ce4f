"""The measures of units against hypotheses, held to plain definitions and to laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.diagnose.inspect.hypothesis_targets import (
    doubled_ranks,
    hypothesis_targets,
    standardized,
)
from edgeflare.diagnose.inspect.unit_measures import (
    CENTRES,
    MEASURES,
    Scores,
    as_they_are,
    unit_forms,
)

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


def measured(measure: str, values: Scores, said: np.ndarray) -> Scores:
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
    assert measured("mean difference", values, said)[0] == pytest.approx(wanted, abs=1e-3)


@given(seeds)
def test_mutual_information_is_that_of_the_table(seed: int) -> None:
    values, said = drawn(seed)
    forms, targets = unit_forms(values), hypothesis_targets(said)
    found = measured("mutual information", values, said)
    for h in range(said.shape[1]):
        for u in range(values.shape[1]):
            joint = np.zeros((4, 4))
            np.add.at(joint, (forms.bins[:, u], targets.bins[:, h]), 1 / len(values))
            alone = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None]
            cells = joint > 0
            wanted = (joint[cells] * np.log2(joint[cells] / alone[cells])).sum()
            assert found[h, u] == pytest.approx(wanted, abs=1e-4)


@given(seeds, st.sampled_from(["auc", "mutual information"]))
def test_monotone_maps_of_units_leave_measures_of_ranks(seed: int, measure: str) -> None:
    values, said = drawn(seed)
    mapped = np.exp(values / 4).astype(np.float32)
    if (doubled_ranks(mapped) == doubled_ranks(values)).all():  # rounding may make ties
        assert (measured(measure, mapped, said) == measured(measure, values, said)).all()


@given(seeds, st.sampled_from(list(CENTRES)))
def test_orders_deal_the_hypotheses_to_the_inputs(seed: int, measure: str) -> None:
    values, said = drawn(seed)
    orders = np.array([np.random.default_rng(seed + n).permutation(len(said)) for n in range(3)])
    found = MEASURES[measure](unit_forms(values), hypothesis_targets(said), orders)
    for order, scores in zip(orders, found, strict=True):
        assert scores == pytest.approx(measured(measure, values, said[order]), abs=1e-4)


@given(seeds, st.sampled_from(list(CENTRES)))
def test_a_constant_unit_has_nothing_to_do_with_anything(seed: int, measure: str) -> None:
    values, said = drawn(seed)
    assert measured(measure, values, said)[:, 2] == pytest.approx(CENTRES[measure], abs=1e-6)


def test_a_hypothesis_with_most_values_at_its_median_is_split_all_the_same() -> None:
    said = np.array([[0.0], [5.0], [5.0], [5.0]])
    assert hypothesis_targets(said).split[:, 0].tolist() == [False, True, True, True]
    assert standardized(np.full((3, 1), 0.1)).tolist() == [[0.0]] * 3
