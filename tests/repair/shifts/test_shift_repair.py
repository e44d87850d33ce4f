"""Tests of edgeflare.repair.shifts.shift_repair: when a repaired model is written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgeflare.bench.bench_statistics import Estimate
from edgeflare.repair.repair_cost import Cost
from edgeflare.repair.shifts.cross_validation import JudgedRepairer
from edgeflare.repair.shifts.shift_fitting import Fitted
from edgeflare.repair.shifts.shift_repair import Shifted, kept, verdict

SURE = JudgedRepairer(
    repair_count=5.0,
    repair_ratio=0.5,
    inducing_count=0.0,
    inducing_ratio=0.0,
    improvement_count=5.0,
    improvement_ratio=0.5,
    induced_agreeing=0.1,
    sampled_repaired=4.0,
    sampled_induced=3.0,
    sampled_ratio=0.9,
    net=Estimate(0.1, 0.05, 0.15),
)
FITTED = Fitted(np.array([[0.0, 0.125], [-0.125, 0.0]]), 1.0)


def test_a_gain_is_written() -> None:
    gained, why = verdict(SURE, FITTED, None)
    assert gained
    assert why.startswith("on held-out inputs 10.0 of 100 fewer deviate")


@pytest.mark.parametrize(
    ("mended", "broken", "ratio"), [(0.0, 12.0, None), (0.0, 0.2, None), (4.0, 5.0, 1.1)]
)
def test_none_is_where_more_inputs_as_they_come_begin_to_deviate_than_are_mended(
    mended: float, broken: float, ratio: float | None
) -> None:
    judged = replace(SURE, sampled_repaired=mended, sampled_induced=broken, sampled_ratio=ratio)
    gained, why = verdict(judged, FITTED, None)
    assert not gained
    assert f"{broken:.1f} begin to deviate, and {mended:.1f} no longer do" in why


def test_nothing_to_mend_and_nothing_broken_is_no_hindrance() -> None:
    judged = replace(SURE, sampled_repaired=0.0, sampled_induced=0.0, sampled_ratio=None)
    assert verdict(judged, FITTED, None)[0]


def test_none_is_where_the_net_may_be_none() -> None:
    gained, why = verdict(replace(SURE, net=Estimate(0.1, 0.0, 0.2)), FITTED, None)
    assert not gained
    assert "not surely above zero" in why


def test_none_is_where_no_boundary_is_shifted() -> None:
    gained, why = verdict(SURE, Fitted(np.zeros((2, 2)), None), None)
    assert not gained
    assert "no shift of a boundary gains anything" in why


def test_a_model_that_answers_otherwise_on_the_device_is_not_kept() -> None:
    cost = Cost("board", 100, 200, 1e-5, 1e-5, 1.0)
    good = Shifted(b"model", b"shifts", cost, 100, 100)
    assert kept(good, "it effects") == (good, "it effects")
    repaired, why = kept(replace(good, same_labels=99), "it effects")
    assert repaired is None
    assert "on 99 of 100 inputs only" in why
