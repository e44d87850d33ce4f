"""What was asked is kept, and read as it was meant when it was written."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from edgeflare.core.bounds import Bounds
from edgeflare.core.domain import Domain
from edgeflare.core.goal import Goal
from edgeflare.core.input_space import EIGHT_BIT
from edgeflare.domains.array.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import UserError
from edgeflare.run.plan import Plan
from edgeflare.search.operator_pool import pool_names

PLAN = Plan("boundary", Goal(), ("board",), ensemble=("xnnpack",))


def test_a_plan_keeps_the_operators_of_its_search() -> None:
    plan = replace(PLAN, operators=("invert", "pixel-change"))
    told = json.loads(json.dumps(plan.to_json()))
    assert told["operators"] == ["invert", "pixel-change"]
    assert Plan.from_json(told) == plan


def test_an_older_plan_has_the_operators_that_were_built_in() -> None:
    told = PLAN.to_json()
    del told["operators"]
    assert Plan.from_json(told).operators == (
        "average-blur",
        "gaussian-blur",
        "gaussian-noise",
        "median-blur",
        "multiplicative-noise",
        "pixel-change",
        "salt-and-pepper",
    )
    assert Plan.from_json(told).operators == pool_names("image")  # as long as it is these


def settled(plan: Plan, domain: Domain, size: int = 784) -> Plan:
    return plan.settled(("xnnpack",), size, ("gain",), domain)


def test_the_defaults_of_images_are_what_they_were() -> None:
    plan = settled(replace(PLAN, within="default"), ImageDomain())
    assert (plan.max_linf, plan.max_l2, plan.within) == (250.0, 2520.0, 30.0)
    assert plan.bounds(EIGHT_BIT) == Bounds(250.0, 2520.0)


@pytest.mark.parametrize(
    ("domain", "within"),
    [(AudioDomain(), 20.0), (ArrayDomain(lowest=0.0, highest=1.0), 30.0), (ArrayDomain(), 20.0)],
)
def test_other_domains_have_their_own_defaults(domain: Domain, within: float) -> None:
    assert (PLAN.max_linf, PLAN.max_l2) == ("default", "default")
    plan = settled(replace(PLAN, within="default"), domain, 10_000)
    assert plan.max_linf == domain.default_linf
    assert domain.default_rms is not None
    assert plan.max_l2 == domain.default_rms * 100
    assert plan.within == within
    assert plan.bounds(domain.space).space is domain.space
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_what_was_asked_is_no_default() -> None:
    asked = replace(PLAN, max_linf=7.0, max_l2=None, within=None)
    plan = settled(asked, AudioDomain())
    assert (plan.max_linf, plan.max_l2, plan.within) == (7.0, None, None)


def test_a_domain_may_have_no_bounds() -> None:
    class Unbounded(ArrayDomain):
        default_linf = None
        default_rms = None

    plan = settled(PLAN, Unbounded())
    assert (plan.max_linf, plan.max_l2) == (None, None)


def test_a_plan_has_no_bounds_before_it_is_settled() -> None:
    with pytest.raises(ValueError, match="not settled"):
        PLAN.bounds(EIGHT_BIT)


@pytest.mark.parametrize("within", [-1.0, float("nan"), "near"])
def test_a_nearness_that_is_none_is_refused(within: float) -> None:
    with pytest.raises(UserError, match=r"within=.*expected a PSNR in dB.*--within"):
        replace(PLAN, within=within)
