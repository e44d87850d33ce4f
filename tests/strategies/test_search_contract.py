"""Searches by strategies of other packages, held to what they must keep to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from driving import SearchCase
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Goal, Trigger
from edgeflare.core.query import Arm, GradientQuery, Outcome, Query, TranslatedQuery
from edgeflare.errors import UserError
from edgeflare.strategies.search_contract import held_search
from edgeflare.strategies.strategy import AskTellSearch, Start, Strategy

Search = Callable[[Start], Any]


def asking(make: Callable[[Start], Any]) -> Search:
    """A search that yields one thing, twice."""

    def search(start: Start) -> Iterator[Any]:
        yield make(start)
        yield make(start)

    return search


def returning(make: Callable[[Start, Outcome], Any]) -> Search:
    """A search that asks about its seed and returns what is made of the answer."""

    def search(start: Start) -> Generator[Any, Any, Any]:
        (outcome,) = yield [Query(start.seed, start.goal.needed)]
        return make(start, outcome)

    return search


def failing(start: Start) -> Iterator[Any]:
    yield [Query(start.seed, start.goal.needed)]
    raise ValueError("two\nlines")


def leaving(_start: Start) -> Iterator[Any]:
    raise SystemExit(0)
    yield


def overwriting(start: Start) -> Iterator[Any]:
    start.seed[:] = 0
    yield [Query(start.seed, start.goal.needed)]


BOTH = (Arm.ORIGINAL, Arm.DEVICE)
UNKNOWN: Any = ("board",)
NO_ARMS: Any = None

BROKEN: dict[str, tuple[Search, str]] = {
    "fails": (failing, r"test_search_contract.py line \d+: ValueError: two lines"),
    "leaves": (leaving, "SystemExit: 0"),
    "writes": (overwriting, "assignment destination is read-only"),
    "no generator": (lambda _start: None, "search returned NoneType"),
    "a query alone": (asking(lambda s: Query(s.seed, BOTH)), "it yielded Query"),
    "no queries": (asking(lambda _s: []), "it yielded nothing"),
    "no query": (asking(lambda _s: [3]), "a list with int"),
    "a list": (asking(lambda s: [Query(s.seed.tolist(), BOTH)]), "it asks about list"),
    "real values": (asking(lambda s: [Query(s.seed + 0.5, BOTH)]), "float64 .* uint8"),
    "a part": (asking(lambda s: [Query(s.seed[:2], BOTH)]), r"of shape \(2, 12, 1\)"),
    "far": (asking(lambda s: [Query(255 - s.seed, BOTH)]), "beyond the run's bounds"),
    "nobody": (asking(lambda s: [Query(s.seed, ())]), "it asks nobody"),
    "an unknown arm": (asking(lambda s: [Query(s.seed, UNKNOWN)]), "asks board, and may ask"),
    "arms that are no list": (asking(lambda s: [Query(s.seed, NO_ARMS)]), "it fails .*TypeError"),
    "an unknown kernel set": (
        asking(lambda s: [Query(s.seed, (), ("quick",))]),
        "asks quick, and may ask device, original, twin",
    ),
    "again at first": (asking(lambda s: [Query(s.seed, BOTH, again=True)]), "asks again"),
    "a gradient": (
        asking(lambda s: GradientQuery(s.seed, Arm.ORIGINAL, np.zeros(4))),
        "GradientQuery, and does not set needs_gradients",
    ),
    "no trigger": (returning(lambda _s, _o: 3), "returned int"),
    "no finding": (
        returning(lambda s, o: Trigger(s.seed, "deviation", o, ())),
        "that is no 'deviation' by its goal",
    ),
    "what it has not asked": (
        returning(lambda s, o: Trigger(s.seed ^ 1, "deviation", o, ())),
        "has not asked original, device",
    ),
}


def begun(search: Search, bench: SearchCase, *, gradients: bool = False) -> AskTellSearch:
    @dataclass(frozen=True)
    class Foreign(Strategy):
        needs_gradients = gradients

        def search(self, start: Start) -> Any:
            return search(start)

    start = Start(
        bench.seed,
        bench.evaluate(bench.seed, tuple(Arm)),
        Goal(ties=True),
        np.random.default_rng(0),
        bounds=Bounds(max_linf=8.0),
    )
    return AskTellSearch(
        held_search(Foreign(), start, lambda why: f"strategy 'own' of package mine: {why}"),
        lambda _query: [],
    )


def drive(search: AskTellSearch, bench: SearchCase) -> AskTellSearch:
    while asked := search.ask():
        search.tell([bench.evaluate(query.input, query.arms) for query in asked])
    return search


@pytest.mark.parametrize("kind", BROKEN)
def test_what_a_strategy_must_not_do_names_its_package(kind: str, bench: SearchCase) -> None:
    search, complaint = BROKEN[kind]
    before = bench.seed.copy()
    with pytest.raises(UserError, match=f"^strategy 'own' of package mine: .*{complaint}"):
        drive(begun(search, bench), bench)
    assert np.array_equal(bench.seed, before)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        (lambda s: TranslatedQuery([s.seed[:1]]), "of shape"),
        (lambda s: GradientQuery(s.seed, Arm.DEVICE, np.zeros(4)), "original or twin"),
        (lambda s: GradientQuery(s.seed, Arm.TWIN, np.zeros(3)), r"\(4,\) finite numbers"),
        (lambda s: GradientQuery(s.seed, Arm.TWIN, np.array([*"abcd"])), "it fails .*TypeError"),
        (lambda s: GradientQuery(s.seed, Arm.TWIN, np.zeros(4), {-1: 1.0}), "by neurons"),
        (lambda s: GradientQuery(s.seed, Arm.TWIN, np.zeros(4), {0: np.nan}), "by neurons"),
    ],
)
def test_white_box_queries_are_held_to_the_same(
    query: Callable[[Start], Any], complaint: str, bench: SearchCase
) -> None:
    with pytest.raises(UserError, match=complaint):
        drive(begun(asking(query), bench, gradients=True), bench)


def test_an_input_stays_what_it_was_when_it_was_yielded(bench: SearchCase) -> None:
    def search(start: Start) -> Iterator[Any]:
        one = start.seed.copy()
        while True:
            yield [Query(one, BOTH)]
            one ^= 1

    held = begun(search, bench)
    (first,) = held.ask()
    held.tell([bench.evaluate(first.input, BOTH)])
    assert np.array_equal(first.input, bench.seed)
    assert np.array_equal(held.ask()[0].input, bench.seed ^ 1)


def test_a_search_that_keeps_to_it_finds_what_it_finds_by_itself(bench: SearchCase) -> None:
    turned = {**bench.models, Arm.DEVICE: lambda image: bench.models[Arm.ORIGINAL](image)[::-1]}
    apart = replace(bench, models=turned)
    names: Any = ["own"]
    search = returning(lambda s, o: Trigger(s.seed, Goal(ties=True).met(o) or "", o, names))
    found = drive(begun(search, apart), apart).finding
    assert found is not None
    assert np.array_equal(found.input, bench.seed)
    assert (found.kind, found.operators) == ("deviation", ("own",))
