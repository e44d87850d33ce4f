"""Tests of edgeflare.repair.page.front_figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.repair.page.front_figure import front_figure
from parsed_pages import Parsed


def candidate(name: str, ratio: float | None, score: float | None) -> Mapping[str, Any]:
    return {"name": name, "latency_ratio": ratio, "score": score, "bytes": 1000}


def drawn(
    candidates: Sequence[Mapping[str, Any]], front: Sequence[str], chosen: str | None = None
) -> Parsed | None:
    svg = front_figure({"candidates": candidates, "front": front, "chosen": chosen})
    return None if svg is None else Parsed(svg)


def words(parsed: Parsed | None) -> str:
    assert parsed is not None
    return str(parsed.all("svg")[0]["aria-label"])


def test_each_candidate_has_a_label_and_the_model_before_too() -> None:
    found = drawn([candidate("ranges", 1.0, 0.6), candidate("float", 0.5, 0.2)], ["float"])
    assert found is not None
    assert {"ranges", "float", "before", "score"} <= set(found.texts)
    assert "On the front, the fastest first: float (time × 0.50, score 0.20)." in words(found)


def test_without_a_measured_time_there_is_no_figure() -> None:
    assert drawn([candidate("ranges", None, 0.6), candidate("broken", 0.5, None)], []) is None
    assert drawn([], []) is None


def test_a_score_beyond_the_axis_is_in_the_label() -> None:
    found = drawn([candidate("bad", 1.2, 14.0)], ["bad"])
    assert found is not None
    assert "bad (14.00)" in found.texts


def test_long_and_hostile_names_are_cut_and_escaped() -> None:
    found = drawn([candidate("<b>$x$</b>", 1.0, 0.5), candidate("n" * 50, 1.1, 0.5)], [])
    assert found is not None
    assert "<b>$x$</b>" in found.texts
    assert "n" * 29 + "…" in found.texts
    assert not found.all("b")


VALUES = st.floats(0, 20, allow_nan=False)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8))
@settings(max_examples=10)
def test_whatever_the_figures_are_it_is_drawn(values: list[tuple[float, float]]) -> None:
    candidates = [candidate(f"c{n}", *one) for n, one in enumerate(values)]
    found = drawn(candidates, ["c0"], "c0")
    assert found is not None
    assert found.open == []
    assert sum(text.startswith("c") for text in found.texts) == len(values)
    assert f"{len(values)} candidates" in words(found)
