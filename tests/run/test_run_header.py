"""What makes a run another run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from edgeflare.core.goal import Goal
from edgeflare.errors import UserError
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import RunHeader

PROVENANCE: dict[str, Any] = {
    "machine": "aarch64",
    "soc": "",
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
    run.require_same(about(dict(PROVENANCE)), "runs/one")
    now = about({**PROVENANCE, key: value})
    with pytest.raises(UserError, match=f"runs/one was begun on a device with {key} .* {value}: "):
        run.require_same(now, "runs/one")


def test_what_the_host_is_is_kept_and_older_journals_do_not_know_it() -> None:
    run = replace(about(PROVENANCE), host={"machine": "x86_64"})
    told = run.to_json()
    assert RunHeader.from_json(told) == run
    del told["host"]
    assert RunHeader.from_json(told).host == {}
    RunHeader.from_json(told).require_same(run, "runs/one")


def test_a_run_of_before_delegates_were_noted_can_be_gone_on_with() -> None:
    old = {k: v for k, v in PROVENANCE.items() if k not in ("delegate", "delegated_nodes")}
    run = about(old)
    run.require_same(about(PROVENANCE), "runs/one")


def test_the_parameters_that_are_set_make_another_run_and_older_journals_have_none() -> None:
    run = about(PROVENANCE)
    assert "parameters" not in run.to_json()["plan"]
    other = replace(run, plan=replace(run.plan, parameters={"max_steps": 20, "first_leap": 4}))
    assert RunHeader.from_json(other.to_json()) == other
    said = "begun with --set first_leap=4 --set max_steps=20, not none: repeat"
    with pytest.raises(UserError, match=said):
        other.require_same(run, "runs/one")
    with pytest.raises(UserError, match="begun with --set none, not first_leap=4 --set max_steps"):
        run.require_same(other, "runs/one")


def test_a_run_is_gone_on_with_only_if_shapes_are_folded_alike() -> None:
    run = about(PROVENANCE)
    folded = replace(run, pair={**run.pair, "folded_shapes": {"sha256": "1"}})
    otherwise = replace(run, pair={**run.pair, "folded_shapes": {"sha256": "2"}})
    folded.require_same(folded, "runs/one")
    with pytest.raises(UserError, match="begun with --fold-shapes, not without: repeat"):
        folded.require_same(run, "runs/one")
    with pytest.raises(UserError, match="begun without --fold-shapes, not with: repeat"):
        run.require_same(folded, "runs/one")
    with pytest.raises(UserError, match="folds the model's shapes otherwise: start a new run"):
        folded.require_same(otherwise, "runs/one")
