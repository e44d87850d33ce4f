"""What a run's header keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from edgeflare.core.goal import Goal
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import RunHeader
from edgeflare.run.seed_ids import SeedIds

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


def test_what_the_host_is_is_kept_and_older_journals_do_not_know_it() -> None:
    run = replace(about(PROVENANCE), host={"machine": "x86_64"})
    told = run.to_json()
    assert RunHeader.from_json(told) == run
    del told["host"]
    assert RunHeader.from_json(told).host == {}


def test_the_seeds_that_are_searched_are_kept_and_are_all_unless_told_otherwise() -> None:
    run = replace(about(PROVENANCE), all_seeds=SeedIds.first(10))
    assert str(run.seed_ids) == "0:10"
    some = replace(run, plan=replace(run.plan, seed_ids=SeedIds.read("2:4,7")))
    assert some.to_json()["plan"]["seed_ids"] == "2:4,7"
    assert RunHeader.from_json(some.to_json()) == some
    assert RunHeader.from_json(run.to_json()) == run
    assert "seed_ids" not in run.to_json()["plan"]


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
    told = about(PROVENANCE).to_json()
    RunHeader.from_json(told)
    assert "is damaged" in refusal(RunHeader.from_json, {**told, key: value})
