"""In what two runs differ that decides their answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from edgeflare.core.goal import Find, Goal
from edgeflare.run.plan import Plan
from edgeflare.run.run_differences import RunDifference, differences, plan_options
from edgeflare.run.run_header import RunHeader
from edgeflare.run.seed_ids import SeedIds

RUN = RunHeader(
    version="test",
    pair={"name": "pair", "fingerprint": "0"},
    plan=Plan("boundary", Goal(), ("board",)),
    devices=({"name": "board", "provenance": {"kernels": "builtin", "threads": 1}},),
    arms={},
    classes=(),
    labels=None,
    host={"machine": "x86_64", "cpu_features": ["avx"], "libraries": {"numpy": "2.2.0"}},
    all_seeds=SeedIds.first(10),
)


def with_plan(**fields: Any) -> RunHeader:
    return replace(RUN, plan=replace(RUN.plan, **fields))


PLANS: list[tuple[dict[str, Any], tuple[str, str, str]]] = [
    ({"strategy": "random"}, ("--strategy", "boundary", "random")),
    ({"rng_seed": 3}, ("--rng-seed", "0", "3")),
    ({"goal": Goal(Find.KERNEL)}, ("--find", "any", "kernel")),
    ({"goal": Goal(ties=True)}, ("--ties", "exclude", "include")),
    ({"limit": 5}, ("--limit", "none", "5")),
    ({"first": 5}, ("--first", "none", "5")),
    ({"coverage": (0.25, 0.5)}, ("--coverage", "none", "0.25,0.5")),
    ({"parameters": {"b": 2, "a": 1}}, ("--set", "none", "a=1 --set b=2")),
    ({"seed_ids": SeedIds.read("0:3,7")}, ("--seed-ids", "none", "0:3,7")),
]


def test_a_run_differs_in_nothing_from_itself() -> None:
    assert list(differences(RUN, RUN)) == []


@pytest.mark.parametrize(("fields", "said"), PLANS)
def test_what_was_asked_is_named_as_the_option_that_sets_it(
    fields: dict[str, Any], said: tuple[str, str, str]
) -> None:
    name, one, other = said
    assert list(differences(RUN, with_plan(**fields))) == [
        RunDifference("option", name, one, other)
    ]
    assert list(differences(with_plan(**fields), RUN)) == [
        RunDifference("option", name, other, one)
    ]


def test_options_that_may_differ_are_ignored() -> None:
    other = with_plan(seed_ids=SeedIds.read("0:3"), rng_seed=1)
    (left,) = differences(RUN, other, ignored=("seed_ids",))
    assert left.name == "--rng-seed"
    ignored = plan_options(RUN.plan.to_json()).keys()
    assert list(differences(RUN, other, ignored)) == []


def test_a_long_value_is_cut() -> None:
    other = with_plan(seed_ids=SeedIds.of(range(0, 2000, 2)))
    (found,) = differences(RUN, other)
    assert found.other == f"{str(other.plan.seed_ids)[:60]}…"


def test_what_differs_comes_in_the_order_pair_option_device_host() -> None:
    other = replace(
        with_plan(rng_seed=1),
        pair={"name": "another", "fingerprint": "1", "folded_shapes": {"sha256": "2"}},
        devices=({"name": "board", "provenance": {"kernels": "xnnpack", "threads": 1}},),
        host={**RUN.host, "machine": "aarch64"},
    )
    assert [found.of for found in differences(RUN, other)] == [
        *("pair", "folding", "option", "device", "host"),
    ]


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ({"cpu_features": ["avx", "amx_int8"]}, [("cpu_features", "no others", "amx_int8")]),
        ({"cpu_features": ["avx", "md_clear"]}, []),  # which kernels do not ask for
        ({"libraries": {"numpy": "2.3.0"}}, [("libraries", "numpy 2.2.0", "numpy 2.3.0")]),
        ({"cores": 99, "cpu": "another"}, []),
    ],
)
def test_hosts_differ_in_what_chooses_kernels_and_draws_mutants(
    host: dict[str, Any], said: list[tuple[str, str, str]]
) -> None:
    other = replace(RUN, host={**RUN.host, **host})
    found = [(one.name, one.one, one.other) for one in differences(RUN, other)]
    assert found == said


def test_what_the_first_does_not_know_is_no_difference() -> None:
    assert list(differences(replace(RUN, host={}), RUN)) == []
    (device,) = RUN.devices
    unknown = replace(RUN, devices=({**device, "provenance": {}},))
    assert list(differences(unknown, RUN)) == []
