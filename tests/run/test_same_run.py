"""What makes a run another run, which may not be gone on with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from edgeflare.core.goal import Goal
from edgeflare.errors import UserError
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import RunHeader
from edgeflare.run.same_run import OtherHostError, require_same

PROVENANCE: dict[str, Any] = {
    "machine": "aarch64",
    "soc": "",
    "cpu_features": ["asimd", "fp"],
    "runtime": "ai-edge-litert",
    "runtime_version": "2.1.0",
    "kernels": "xnnpack",
    "threads": 1,
    "delegate": "libvendor.so",
    "delegated_nodes": 11,
}


def about(provenance: dict[str, Any]) -> RunHeader:
    return RunHeader(
        version="test",
        pair={"name": "pair", "fingerprint": "0"},
        plan=Plan("boundary", Goal(), ("board",)),
        devices=({"name": "board", "provenance": provenance},),
        arms={},
        classes=(),
        labels=None,
    )


@pytest.mark.parametrize("began", ["survey", "replay", "boundary"])
@pytest.mark.parametrize("goes_on", ["survey", "replay", "boundary"])
def test_a_run_of_another_command_is_told_as_such(began: str, goes_on: str) -> None:
    run = about(PROVENANCE)
    one, other = (
        replace(
            run, plan=replace(run.plan, strategy=strategy, goal=Goal(ties=strategy == "survey"))
        )
        for strategy in (began, goes_on)
    )
    if began == goes_on:
        require_same(one, other, "runs/one")
        return
    names = [name.replace("boundary", "search") for name in (began, goes_on)]
    with pytest.raises(UserError, match="runs/one holds a {0}, and no {1}: .*{0}".format(*names)):
        require_same(one, other, "runs/one")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kernels", "builtin"),
        ("delegate", None),
        ("delegate", "libother.so"),
        ("delegated_nodes", 0),
    ],
)
def test_a_device_that_would_answer_otherwise_is_another_run(key: str, value: object) -> None:
    run = about(PROVENANCE)
    require_same(run, about(dict(PROVENANCE)), "runs/one")
    now = about({**PROVENANCE, key: value})
    with pytest.raises(UserError, match=f"runs/one was begun on a device with {key} .* {value}: "):
        require_same(run, now, "runs/one")


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (["asimd", "asimddp", "fp"], "no others there and asimddp on the one of now"),
        (["fp", "sve"], "asimd there and sve on the one of now"),
    ],
)
def test_a_device_whose_processor_has_other_features_is_another_run(
    features: list[str], said: str
) -> None:
    """Servers of one architecture need not tell what they are otherwise."""
    run, now = about(PROVENANCE), about({**PROVENANCE, "cpu_features": features})
    words = f"runs/one was begun on a device with other cpu_features, {said}: start a new run"
    with pytest.raises(UserError, match=words):
        require_same(run, now, "runs/one")
    older = about({key: value for key, value in PROVENANCE.items() if key != "cpu_features"})
    require_same(older, now, "runs/one")


HOST: dict[str, Any] = {
    "machine": "x86_64",
    "cpu_features": ["avx", "avx2"],
    "runtime": "ai-edge-litert",
    "runtime_version": "2.1.0",
    "original_runtime": None,
    "libraries": {"numpy": "2.2.0", "opencv": "4.11.0"},
    "cores": 2,
}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("runtime_version", "2.3.0", "with runtime_version 2.1.0 there and 2.3.0 here"),
        (
            "cpu_features",
            ["avx", "amx_int8"],
            "with cpu_features avx2 there and amx_int8 here",
        ),
        ("cpu_features", ["avx"], "with cpu_features avx2 there and no others here"),
        (
            "libraries",
            {"numpy": "2.3.0", "opencv": "4.11.0"},
            "numpy 2.2.0, opencv 4.11.0 there and numpy 2.3.0, opencv 4.11.0 here",
        ),
    ],
)
def test_a_host_that_may_answer_otherwise_is_refused_unless_it_is_allowed(
    key: str, value: object, said: str
) -> None:
    run = replace(about(PROVENANCE), host=HOST)
    now = replace(run, host={**HOST, key: value})
    with pytest.raises(OtherHostError, match=f"begun on another host, .*{said}"):
        require_same(run, now, "runs/one")
    require_same(run, now, "runs/one", allow_other_host=True)


def test_a_host_with_more_cores_is_the_same_and_older_journals_know_no_host() -> None:
    run = replace(about(PROVENANCE), host=HOST)
    require_same(run, replace(run, host={**HOST, "cores": 64}), "runs/one")
    require_same(replace(run, host={}), run, "runs/one")


def test_a_run_of_before_delegates_were_noted_can_be_gone_on_with() -> None:
    old = {k: v for k, v in PROVENANCE.items() if k not in ("delegate", "delegated_nodes")}
    run = about(old)
    require_same(run, about(PROVENANCE), "runs/one")


def test_the_parameters_that_are_set_make_another_run_and_older_journals_have_none() -> None:
    run = about(PROVENANCE)
    assert "parameters" not in run.to_json()["plan"]
    other = replace(run, plan=replace(run.plan, parameters={"max_steps": 20, "first_leap": 4}))
    assert RunHeader.from_json(other.to_json()) == other
    said = "begun with --set first_leap=4 --set max_steps=20, not none: repeat"
    with pytest.raises(UserError, match=said):
        require_same(other, run, "runs/one")
    with pytest.raises(UserError, match="begun with --set none, not first_leap=4 --set max_steps"):
        require_same(run, other, "runs/one")


def test_a_run_is_gone_on_with_only_if_shapes_are_folded_alike() -> None:
    run = about(PROVENANCE)
    folded = replace(run, pair={**run.pair, "folded_shapes": {"sha256": "1"}})
    otherwise = replace(run, pair={**run.pair, "folded_shapes": {"sha256": "2"}})
    require_same(folded, folded, "runs/one")
    with pytest.raises(UserError, match="begun with --fold-shapes, not without: repeat"):
        require_same(folded, run, "runs/one")
    with pytest.raises(UserError, match="begun without --fold-shapes, not with: repeat"):
        require_same(run, folded, "runs/one")
    with pytest.raises(UserError, match="folds the model's shapes otherwise: start a new run"):
        require_same(folded, otherwise, "runs/one")
