"""What a run was asked and where it ran: kept, compared with another run, and held to on resume."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from documents import run_device, run_host, run_pair
from edgeflare.core.bounds import Bounds
from edgeflare.core.domain import Domain
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import EIGHT_BIT
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import UserError
from edgeflare.record.json_types import plain_json
from edgeflare.record.request import option_names
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import (
    OtherHostError,
    RunDifference,
    RunHeader,
    differences,
    require_same,
)
from edgeflare.run.seed_ids import SeedIds

PLAN = Plan("boundary", Goal(), ("board",))
RUNTIME = {"runtime": "ai-edge-litert", "runtime_version": "2.1.0"}
DEVICE: dict[str, Any] = {
    **RUNTIME, "kernels": "xnnpack", "delegate": "libvendor.so", "delegated_nodes": 11,
}  # fmt: skip
RUN = RunHeader(
    version="test",
    pair=run_pair(fingerprint="0"),
    plan=PLAN,
    devices=(run_device(**DEVICE),),
    arms={},
    classes=(),
    labels=None,
    host=run_host(**RUNTIME),
    all_seeds=SeedIds.first(10),
)


def with_plan(**fields: Any) -> RunHeader:
    return replace(RUN, plan=replace(PLAN, **fields))


def on_device(**fields: Any) -> RunHeader:
    return replace(RUN, devices=(run_device(**DEVICE | fields),))


def on_host(**fields: Any) -> RunHeader:
    return replace(RUN, host=run_host(**RUNTIME | fields))


def folded(sha256: str) -> dict[str, Any]:
    return {"operators": ["SHAPE"], "sha256": sha256, "equal_under": ["xnnpack"], "inputs": 1}


def again(plan: Plan) -> Plan:
    """The plan as it is read from what is written."""
    return Plan.from_json(json.loads(json.dumps(plain_json(plan))))


@pytest.mark.parametrize(
    "changes",
    [
        {"unknown": 3},
        {"goal": {"find": "any", "ties": False, "min_strength": 0.0, "unknown": 3}},
        {"max_linf": float("nan")},
        {"strengthen": -5},
        {"coverage": [-1.0]},
    ],
)
def test_a_plan_that_no_run_has_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no plan has unknown|Expected"):
        Plan.from_json({**plain_json(PLAN), **changes})


def test_a_plan_keeps_the_operators_of_its_search() -> None:
    plan = replace(PLAN, operators=("invert", "pixel-change"))
    assert again(plan) == plan


@pytest.mark.parametrize(
    ("domain", "linf", "rms", "within"),
    [
        (ImageDomain(), 250.0, 90.0, 30.0),
        (AudioDomain(), AudioDomain().default_linf, AudioDomain().default_rms, 20.0),
        (ArrayDomain(lowest=0.0, highest=1.0), None, ArrayDomain.default_rms, 30.0),
        (ArrayDomain(), None, ArrayDomain.default_rms, 20.0),
    ],
)
def test_each_domain_has_its_own_defaults(
    domain: Domain, linf: float | None, rms: float, within: float
) -> None:
    assert (PLAN.max_linf, PLAN.max_l2) == ("default", "default")
    plan = replace(PLAN, within_db="default").settled(("xnnpack",), 784, ("gain",), domain)
    assert (plan.max_linf, plan.within_db) == (
        domain.default_linf if linf is None else linf,
        within,
    )
    assert plan.max_l2 == rms * 28
    assert plan.bounds(domain.space) == Bounds(domain.default_linf, rms * 28, domain.space)
    assert again(plan) == plan


def test_what_was_asked_is_no_default_and_a_domain_may_have_no_bounds() -> None:
    asked = replace(PLAN, max_linf=7.0, max_l2=None, within_db=None)
    plan = asked.settled(("xnnpack",), 784, ("gain",), AudioDomain())
    assert (plan.max_linf, plan.max_l2, plan.within_db) == (7.0, None, None)

    class Unbounded(ArrayDomain):
        default_linf = None
        default_rms = None

    plan = PLAN.settled(("xnnpack",), 784, ("gain",), Unbounded())
    assert (plan.max_linf, plan.max_l2) == (None, None)
    with pytest.raises(ValueError, match="not settled"):
        PLAN.bounds(EIGHT_BIT)


@pytest.mark.parametrize("within", [-1.0, float("nan"), "near"])
def test_a_nearness_that_is_none_is_refused(within: float) -> None:
    with pytest.raises(UserError, match=r"within=.*expected a PSNR in dB.*--within"):
        replace(PLAN, within_db=within)


def test_a_header_is_read_as_it_was_written() -> None:
    some = with_plan(seed_ids=SeedIds.read("2:4,7"), parameters={"max_steps": 20})
    for run in (RUN, some):
        assert RunHeader.from_json(run.to_json()) == run
    assert (str(RUN.seed_ids), some.to_json()["plan"]["seed_ids"]) == ("0:10", "2:4,7")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pair", {"name": 1}),
        ("plan", {"strategy": "random"}),
        ("devices", [{"name": "phone"}]),
        ("devices", [{"name": "phone", "provenance": {"kernels": []}}]),
        ("classes", [1]),
        ("labels", ["one"]),
        ("names", "one"),
        ("arms", []),
        ("host", {"machine": 1}),
        ("version", None),
    ],
)
def test_what_no_run_says_of_itself_is_damage(
    key: str, value: object, refusal: Callable[..., str]
) -> None:
    assert "is damaged" in refusal(RunHeader.from_json, {**RUN.to_json(), key: value})


PLANS: list[tuple[dict[str, Any], tuple[str, str | None, str | None]]] = [
    ({"strategy": "random"}, ("--strategy", "boundary", "random")),
    ({"rng_seed": 3}, ("--rng-seed", "0", "3")),
    ({"goal": Goal(Find.KERNEL)}, ("--find", "any", "kernel")),
    ({"goal": Goal(ties=True)}, ("--ties", "exclude", "include")),
    ({"max_queries": 7}, ("--max-queries", str(PLAN.max_queries), "7")),
    ({"limit": 5}, ("--limit", None, "5")),
    ({"first": 5}, ("--first", None, "5")),
    ({"shrink": 7}, ("--shrink", str(PLAN.shrink), "7")),
    ({"strengthen": 7}, ("--strengthen", str(PLAN.strengthen), "7")),
    ({"ensemble": ("xnnpack", "builtin")}, ("--ensemble", None, "xnnpack,builtin")),
    (
        {"ensemble": ("xnnpack",), "elsewhere": ("dequantized",)},
        ("--ensemble", None, "xnnpack,dequantized"),
    ),
    ({"operators": ("blur",)}, ("--operators", "built-in", "blur")),
    ({"coverage": (0.25, 0.5)}, ("--coverage", None, "0.25,0.5")),
    ({"parameters": {"b": 2, "a": 1}}, ("--set", None, "a=1 --set b=2")),
    ({"seed_ids": SeedIds.read("0:3,7")}, ("--seed-ids", None, "0:3,7")),
]


@pytest.mark.parametrize(("fields", "said"), PLANS)
def test_what_was_asked_is_named_as_the_option_that_sets_it(
    fields: dict[str, Any], said: tuple[str, str | None, str | None]
) -> None:
    name, one, other = said
    assert list(differences(RUN, RUN)) == []
    assert list(differences(RUN, with_plan(**fields))) == [
        RunDifference("option", name, one, other)
    ]
    before, now = (f"without {name}" if x is None else f"with {name} {x}" for x in (other, one))
    instead = now if None in (one, other) else one
    with pytest.raises(UserError, match=f"begun {before}, not {instead}: repeat"):
        require_same(with_plan(**fields), RUN, "runs/one")


def test_a_message_says_none_of_an_option_that_was_not_given() -> None:
    (left,) = differences(RUN, with_plan(limit=5))
    assert left.in_words() == ("none", "5")


def test_options_that_may_differ_are_ignored_and_a_long_value_is_cut() -> None:
    other = with_plan(seed_ids=SeedIds.of(range(0, 2000, 2)), rng_seed=1)
    (left,) = differences(RUN, other, ignored=("--seed-ids",))
    assert left.name == "--rng-seed"
    assert list(differences(RUN, other, option_names(Plan))) == []
    (left,) = differences(RUN, other, ignored=("--rng-seed",))
    assert left.other == f"{str(other.plan.seed_ids)[:60]}…"


def test_what_differs_comes_in_the_order_pair_option_device_host() -> None:
    other = replace(
        with_plan(rng_seed=1),
        pair=run_pair(name="another", fingerprint="1", folded_shapes=folded("2")),
        devices=on_device(kernels="builtin").devices,
        host=run_host(**RUNTIME, machine="aarch64"),
    )
    assert [found.of for found in differences(RUN, other)] == [
        *("pair", "folding", "option", "device", "host")
    ]


@pytest.mark.parametrize("began", ["survey", "replay", "boundary"])
@pytest.mark.parametrize("goes_on", ["survey", "replay", "boundary"])
def test_a_run_of_another_command_is_told_as_such(began: str, goes_on: str) -> None:
    one, other = (
        with_plan(strategy=strategy, goal=Goal(ties=strategy == "survey"))
        for strategy in (began, goes_on)
    )
    if began == goes_on:
        require_same(one, other, "runs/one")
        return
    names = [name.replace("boundary", "search") for name in (began, goes_on)]
    with pytest.raises(UserError, match="runs/one holds a {0}, and no {1}: .*{0}".format(*names)):
        require_same(one, other, "runs/one")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kernels": "builtin"}, "with kernels .* builtin: "),
        ({"delegate": None}, "with delegate .* None: "),
        ({"delegated_nodes": 0}, "with delegated_nodes .* 0: "),
        (
            {"cpu_features": ["asimd", "asimddp", "fp"]},
            "with other cpu_features, no others there and asimddp on the one of now: start a new",
        ),
        (
            {"cpu_features": ["fp", "sve"]},
            "with other cpu_features, asimd there and sve on the one of now: start a new run",
        ),
    ],
)
def test_a_device_that_would_answer_otherwise_is_another_run(
    changed: dict[str, Any], said: str
) -> None:
    """Servers of one architecture need not tell what they are but by their features."""
    require_same(RUN, on_device(), "runs/one")
    with pytest.raises(UserError, match=f"runs/one was begun on a device {said}"):
        require_same(RUN, on_device(**changed), "runs/one")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"runtime_version": "2.3.0"}, "runtime_version 2.1.0 there and 2.3.0 here"),
        ({"cpu_features": ["avx", "amx_int8"]}, "cpu_features avx2 there and amx_int8 here"),
        ({"cpu_features": ["avx"]}, "cpu_features avx2 there and no others here"),
        (
            {"libraries": {"numpy": "2.3.0", "opencv": "4.11.0"}},
            "numpy 2.2.0, opencv 4.11.0 there and numpy 2.3.0, opencv 4.11.0 here",
        ),
    ],
)
def test_a_host_that_may_answer_otherwise_is_refused_unless_it_is_allowed(
    changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(OtherHostError, match=f"begun on another host, .*{said}"):
        require_same(RUN, on_host(**changed), "runs/one")
    require_same(RUN, on_host(**changed), "runs/one", allow_other_host=True)


def test_a_host_is_the_same_that_differs_in_what_decides_no_answer() -> None:
    features = [*RUN.host.cpu_features, "md_clear"]  # which kernels do not ask for
    require_same(RUN, on_host(cores=64, soc="another", cpu_features=features), "runs/one")


def test_a_run_is_gone_on_with_only_if_shapes_are_folded_alike() -> None:
    as_it_is, otherwise = (
        replace(RUN, pair=run_pair(fingerprint="0", folded_shapes=folded(sha256)))
        for sha256 in ("1", "2")
    )
    require_same(as_it_is, as_it_is, "runs/one")
    for one, other, said in (
        (as_it_is, RUN, "begun with --fold-shapes, not without: repeat"),
        (RUN, as_it_is, "begun without --fold-shapes, not with: repeat"),
        (as_it_is, otherwise, "folds the model's shapes otherwise: start a new run"),
    ):
        with pytest.raises(UserError, match=said):
            require_same(one, other, "runs/one")
