"""What a command was asked: compared by its options, and held to when the command goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import pytest

from edgeflare.errors import UserError
from edgeflare.record.request import (
    DERIVED,
    AskedDifference,
    Option,
    differences,
    option_names,
    require_same_request,
)


@dataclass(frozen=True)
class Aim:
    deep: bool = False
    weak: Annotated[bool, Option("--weak", lambda weak: "kept" if weak else "left")] = False


@dataclass(frozen=True)
class Request:
    names: Annotated[tuple[str, ...], Option("--name", ",".join)] = ("a",)
    aim: Aim = Aim()
    most_steps: Annotated[int | None, Option("--most-steps", more="larger")] = 10
    width: Annotated[float | None, Option("--width", more="smaller")] = None
    digest: Annotated[str, DERIVED] = ""
    more_names: Annotated[tuple[str, ...], Option("--name", ",".join)] = ()
    sizes: Annotated[Mapping[str, int], Option("--sizes", ",".join, ordered=True)] = field(
        default_factory=dict
    )
    rng_seed: int = 0


def changed(**fields: Any) -> Request:
    return replace(Request(), **fields)


@pytest.mark.parametrize(
    ("other", "name", "one", "two"),
    [
        (changed(names=("a", "b")), "--name", "a", "a,b"),
        (changed(aim=Aim(deep=True)), "--deep", None, "True"),
        (changed(aim=Aim(weak=True)), "--weak", "left", "kept"),
        (changed(most_steps=None), "--most-steps", "10", None),
        (changed(rng_seed=1), "--rng-seed", "0", "1"),
        (changed(names=(100 * "x",)), "--name", "a", f"{60 * 'x'}…"),
        (changed(more_names=("c",)), "--name", "a", "a,c"),
        (changed(sizes={"a": 1}), "--sizes", "", "a"),
    ],
)
def test_two_requests_differ_in_the_option_of_the_field(
    other: Request, name: str, one: str | None, two: str | None
) -> None:
    assert list(differences(Request(), other)) == [AskedDifference(name, one, two)]
    assert list(differences(Request(), other, ignored=(name,))) == []
    assert name in option_names(Request)


def test_what_follows_from_others_was_not_asked_for() -> None:
    assert list(differences(Request(), changed(digest="another"))) == []
    assert not require_same_request(Request(), changed(digest="another"), Path("run"))


@pytest.mark.parametrize(
    ("begun", "now", "said"),
    [
        ({}, {"rng_seed": 1}, "with --rng-seed 0, not 1: repeat .* --resume, or name another"),
        ({}, {"aim": Aim(deep=True)}, "without --deep, not with --deep: repeat"),
        ({}, {"most_steps": 9}, "not 9: .*, and a larger --most-steps if more is wanted, or name"),
        ({}, {"width": 0.5}, "without --width, not with --width 0.5: .* a larger --most-steps if"),
        ({"width": 1.0}, {"width": 2.0}, "a larger --most-steps or a smaller --width if more is"),
        ({"names": (80 * "x",)}, {"names": (90 * "x",)}, "another value of --name, not this one"),
        ({"sizes": {"a": 1}}, {"sizes": {"a": 2}}, "with --sizes a, which stands for something el"),
        ({"sizes": {"a": 1, "b": 1}}, {"sizes": {"b": 1, "a": 1}}, "--sizes a,b, not b,a: repeat"),
    ],
)
def test_another_request_is_refused_with_what_to_type(
    begun: dict[str, Any], now: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=f"runs/one was begun .*{said}"):
        require_same_request(changed(**begun), changed(**now), Path("runs/one"))


@pytest.mark.parametrize(
    ("begun", "now"),
    [
        ({}, {"most_steps": 11}),
        ({}, {"most_steps": None}),
        ({"width": 0.5}, {"width": 0.4}),
        ({"width": 0.5}, {"width": None, "most_steps": 20}),
    ],
)
def test_more_may_be_asked_for_in_its_direction(begun: dict[str, Any], now: dict[str, Any]) -> None:
    assert require_same_request(changed(**begun), changed(**now), Path("run"))
    assert not require_same_request(changed(**begun), changed(**begun), Path("run"))
