"""Which run is another one than that which was begun."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from conforming import ADD, SUM, a_header
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.record import conform_header
from edgeflare.conform.record.conform_header import ConformHeader, specification_digest
from edgeflare.errors import UserError


def test_a_header_is_read_back() -> None:
    header = a_header((ADD, SUM))
    again = ConformHeader.from_json(json.loads(json.dumps(header.to_json())))
    assert again == header
    again.require_same(header, "run")


def test_another_device_is_refused_and_what_it_has_is_named() -> None:
    begun = a_header()
    for device, said in (
        (
            {"delegate": "gpu"},
            "with a device with delegate None, and this is a device with delegate gpu",
        ),
        (
            {"cpu_features": ["asimd", "asimddp"]},
            "a device whose processor has no others, and this is one whose processor has asimddp",
        ),
    ):
        with pytest.raises(UserError, match=said) as refused:
            begun.require_same(replace(begun, device={**begun.device, **device}), "out/run")
        assert "out/run was begun with" in str(refused.value)
        assert "begin another run with another --out" in str(refused.value)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"cells": (ADD, SUM)}, r"ADD in int8 \(--ops, --dtype\), and this is ADD, SUM in int8"),
        ({"rng_seed": 1}, "with --rng-seed 0, and this is --rng-seed 1"),
        ({"pairs": True}, "with no --pairs, and this is --pairs"),
        ({"models": 97}, "with --models 96, and this is --models 97"),
        ({"models": 64}, "with --models 96, and this is --models 64"),
        ({"models": None}, "with --models 96, and this is no --models"),
        ({"drawing": "memo"}, "with --draw uniform, and this is --draw memo"),
        ({"model": "ab"}, "with no --from, and this is --from a model with the sha256 ab"),
    ],
)
def test_another_question_is_refused(request_: Mapping[str, Any], said: str) -> None:
    begun = a_header()
    other = replace(begun, request=replace(begun.request, **request_))
    with pytest.raises(UserError, match=said):
        begun.require_same(other, "run")


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (120.0, 90.5, r"run may take 120 seconds, and this would end it after 90\.5: type"),
        (2e6, 60.0, "type --time-limit 2000000s or longer, or begin another run"),
        (None, 600.0, "run has no time limit, and this would end it after 600: leave out"),
        (None, 600.0, "leave out --time-limit, or begin another run"),
    ],
)
def test_less_time_is_refused(was: float | None, now: float, said: str) -> None:
    begun = a_header()
    begun = replace(begun, request=replace(begun.request, seconds=was))
    other = replace(begun, request=replace(begun.request, seconds=now))
    with pytest.raises(UserError, match=said):
        begun.require_same(other, "run")


@pytest.mark.parametrize(
    ("was", "now"), [(120.0, 120.0), (120.0, 120.5), (120.0, None), (None, None)]
)
def test_as_much_time_or_more_is_taken(was: float | None, now: float | None) -> None:
    begun = a_header()
    begun = replace(begun, request=replace(begun.request, seconds=was))
    begun.require_same(replace(begun, request=replace(begun.request, seconds=now)), "run")


def test_another_specification_is_refused() -> None:
    begun = a_header()
    with pytest.raises(UserError, match=r"other declarations .* those of edgeflare 0\.2\.0"):
        begun.require_same(replace(begun, specification="abd", version="0.2.0"), "run")


def test_what_changes_no_answer_may_differ() -> None:
    begun = a_header()
    device = {**begun.device, "name": "board-2", "temperature": 71, "started": "later"}
    begun.require_same(replace(begun, device=device, version="0.2.0"), "run")


def test_the_digest_is_that_of_the_declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_operators()
    before = specification_digest()
    assert before == specification_digest()
    fewer = {name: one for name, one in known.items() if name != "ADD"}
    monkeypatch.setattr(conform_header, "known_operators", lambda: fewer)
    assert specification_digest() != before
