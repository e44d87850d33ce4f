from __future__ import annotations

from functools import partial
from math import inf

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents import finding, run_document
from edgeflare.core.domain import PSNR, decibels
from edgeflare.core.goal import Goal
from edgeflare.report.nearness_figure import db_steps, linf_steps
from edgeflare.run.nearness import area, is_near, is_strong, levels_db, nearness_of
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import Finding, RunDocument

psnr = partial(decibels, 255.0)
DISTANCES = st.lists(st.floats(0.0, 255.0), max_size=20)


def entry(rms: float) -> Finding:
    """An entry of a run over images of 100 values."""
    l2 = 10.0 * rms
    distance = {"l2": l2, "linf": min(255.0, 2.0 * rms), "mean_abs": rms, "changed": 1}
    near = None if rms == 0.0 else psnr(l2, 100)
    return finding(distortion=distance, nearness_db=near)


def document(rms: list[float], seeds: int) -> RunDocument:
    return run_document(
        totals={"seeds": seeds},
        findings=[entry(one) for one in rms if one > 0.0],
        deviating_seeds=[entry(one) for one in rms if one == 0.0],
    )


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3]))
def test_the_psnr_is_that_of_opencv(rng_seed: int, channels: int) -> None:
    rng = np.random.default_rng(rng_seed)
    seed, image = rng.integers(0, 256, (2, 7, 5, channels), dtype=np.uint8)
    l2 = float(np.linalg.norm(image.astype(float) - seed))
    assert psnr(l2, seed.size) == pytest.approx(cv2.PSNR(seed, image), abs=1e-6)
    assert psnr(0.0, seed.size) == inf


@given(DISTANCES, st.integers(0, 20))
def test_shares_are_of_all_seeds_and_grow_with_the_distance(rms: list[float], unfound: int) -> None:
    seeds = len(rms) + unfound
    near = nearness_of([entry(one) for one in rms], seeds)
    counts = [one.seeds for one in near.db]
    assert counts == sorted(counts, reverse=True)
    assert counts == [
        sum(one == 0.0 or psnr(10.0 * one, 100) >= level for one in rms)
        for level in levels_db(PSNR)
    ]
    largest = [one.seeds for one in near.linf]
    assert largest == sorted(largest)
    for levels in (near.db, near.linf):
        assert [one.share for one in levels] == pytest.approx(
            [one.seeds / max(1, seeds) for one in levels]
        )


@pytest.mark.slow
@settings(max_examples=10)
@given(DISTANCES, st.integers(0, 20))
def test_the_area_is_that_under_the_curve(rms: list[float], unfound: int) -> None:
    seeds = len(rms) + unfound
    known = [psnr(10.0 * one, 100) for one in rms]
    grid = np.linspace(*PSNR.curve, 5_001)
    shares = [sum(one >= level for one in known) / max(1, seeds) for level in grid]
    assert area(known, seeds) == pytest.approx(float(np.mean(shares)), abs=4e-3)


def test_seeds_that_deviate_themselves_lie_at_no_distance_and_those_without_never_rise() -> None:
    near = nearness_of([entry(0.0), entry(0.0)], 4)
    assert {one.share for one in near.db} == {one.share for one in near.linf} == {0.5}
    assert near.area == 0.5
    assert nearness_of([], 4).area == 0.0
    assert db_steps(document([], 4)) == ([], [])


@given(DISTANCES)
def test_the_curve_goes_from_near_to_far(rms: list[float]) -> None:
    run = document(rms, len(rms) + 3)
    for steps, reverse in ((db_steps(run), True), (linf_steps(run), False)):
        distances, shares = steps
        assert distances == sorted(distances, reverse=reverse)
        assert shares == [n / (len(rms) + 3) for n in range(1, len(rms) + 1)]


@pytest.mark.parametrize(
    ("plan", "rms", "strength", "within", "strong"),
    [
        ({}, 20.0, 0.1, None, None),
        ({"within_db": 30.0}, 8.0, 0.1, True, None),
        ({"within_db": 30.0}, 8.1, 0.1, False, None),
        ({"within_db": 30.0}, 0.0, 0.1, True, None),
        ({"min_strength": 0.1}, 20.0, 0.1, None, True),
        ({"min_strength": 0.1}, 20.0, 0.09, None, False),
        ({"min_strength": 0.1, "within_db": 30.0}, 20.0, None, False, None),
    ],
)
def test_entries_are_judged_by_what_was_asked(
    plan: dict[str, float],
    rms: float,
    strength: float | None,
    within: bool | None,
    strong: bool | None,
) -> None:
    asked = Plan("random", Goal(), ("device",), **plan)  # type: ignore[arg-type]
    assert is_near(asked, psnr(10.0 * rms, 100)) is within
    assert is_strong(asked, strength) is strong
