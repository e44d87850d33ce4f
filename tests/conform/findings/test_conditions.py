"""What may be said of a fault's models: predicates over settings, and several of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.findings.condition_learning import vocabulary
from edgeflare.conform.findings.fault_condition import (
    FaultCondition,
    Predicate,
    constant,
    written_number,
)
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.specification.parameter import Setting

MODEL: Mapping[str, Setting] = {
    "stride_w": 3,
    "kernel_w": 2,
    "padding": "SAME",
    "per_channel": True,
    "scale": 0.125,
    "other_scale": 0.5,
    "shape": (4, 1, 6),
    "other": (6,),
    "begin": (4, 1, 6),
    "scalar": (),
    "zero": 0,
}


@pytest.mark.parametrize(
    "text",
    [
        "stride_w > kernel_w",
        "stride_w % 2 ≠ 0",
        "kernel_w ≥ 2",
        "kernel_w = 2",
        "kernel_w < 3",
        "padding is SAME",
        "per_channel is yes",
        "scale ≥ 2^-3",
        "scale / other_scale ≤ 0.25",
        "rank(shape) = 3",
        "size(shape) = 24",
        "size(scalar) = 1",
        "rank(scalar) = 0",
        "least(shape) = 1",
        "greatest(shape) = 6",
        "shape[-1] = 6",
        "shape[0] % 4 = 0",
        "shape[-1] = other[-1]",
        "shape is [4, 1, 6]",
        "shape equals begin",
        "shape differs from other",
    ],
)
def test_what_is_true_of_a_model_holds_and_its_opposite_does_not(text: str) -> None:
    opposites = {
        ">": "≤",
        "<": "≥",
        "≥": "<",
        "≤": ">",
        "=": "≠",
        "≠": "=",
        "is": "is not",
        "equals": "differs from",
        "differs from": "equals",
    }
    one = Predicate.parsed(text)
    assert str(one) == text
    assert one.holds(MODEL)
    assert not Predicate(one.left, opposites[one.relation], one.right).holds(MODEL)


@pytest.mark.parametrize(
    "text",
    [
        "rows > 1",
        "rows ≠ 1",
        "rows is not 3",
        "rows differs from shape",
        "shape[3] ≠ 1",
        "least(scalar) ≠ 1",
        "scalar[-1] ≤ 1",
        "scale / stride_v < 1",
        "scale / zero ≥ 1",
        "padding > 1",
    ],
)
def test_nothing_holds_of_a_quantity_that_a_model_lacks(text: str) -> None:
    assert not Predicate.parsed(text).holds(MODEL)


def test_relations_are_read_as_a_keyboard_has_them() -> None:
    for typed, written in ((">=", "≥"), ("<=", "≤"), ("!=", "≠"), ("==", "=")):
        assert str(Predicate.parsed(f" kernel_w {typed} 2 ")) == f"kernel_w {written} 2"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kernel_w",
        "kernel_w >= ",
        "kernel w > 2",
        "shape[x] = 1",
        "mean(shape) > 2",
        "a % 0 = 0",
        "a + b > 1",
    ],
)
def test_what_is_no_predicate_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="stride_w > kernel_w"):
        Predicate.parsed(text)


@given(st.one_of(st.integers(-(2**31), 2**31), st.floats(-1e6, 1e6)))
def test_numbers_are_read_as_they_are_written(number: float) -> None:
    assert constant(written_number(number)) == number


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "stride": st.integers(0, 40),
                "axis": st.integers(-4, 4),
                "padding": st.sampled_from(["SAME", "VALID", "=1"]),
                "bias": st.booleans(),
                "scale": st.floats(2**-12, 2**10),
                "begin": st.floats(-3, 3),
                "shape": st.lists(st.integers(0, 9), max_size=3).map(tuple),
                "other": st.lists(st.integers(0, 9), max_size=3).map(tuple),
            }
        ),
        min_size=2,
        max_size=6,
    )
)
def test_every_predicate_that_may_be_learned_can_be_written_and_read(
    rows: list[dict[str, object]],
) -> None:
    table = SettingsTable(rows)  # type: ignore[arg-type]
    known = vocabulary((), table)
    assert len(set(map(str, known.predicates))) == len(known.predicates) == len(known.costs)
    for one in known.predicates:
        assert Predicate.parsed(str(one)) == one
    held = known.held(table)
    for at in range(0, len(known.predicates), 29):
        assert [known.predicates[at].holds(row) for row in table.rows] == list(held[at])


def test_remainders_are_learned_of_sizes_and_last_dimensions() -> None:
    shapes = [(4, 6), (8, 5), (2, 3, 3), (7,)]
    known = vocabulary((), SettingsTable([{"shape": shape} for shape in shapes]))
    remainders = [text for text in map(str, known.predicates) if "%" in text]
    assert {text.partition(" %")[0] for text in remainders} == {"size(shape)", "shape[-1]"}


def test_a_condition_holds_where_all_of_its_predicates_do() -> None:
    both = FaultCondition.parsed(["stride_w > kernel_w", "padding is SAME"])
    assert both.holds(MODEL)
    assert not both.holds({**MODEL, "padding": "VALID"})
    assert not both.holds({**MODEL, "stride_w": 2})


def test_a_condition_does_not_depend_on_the_order_of_its_predicates() -> None:
    one = FaultCondition.parsed(["stride_w > kernel_w", "padding is SAME"])
    assert one == FaultCondition.parsed([*reversed(one.texts), "padding is SAME"])
    assert str(one) == "padding is SAME, stride_w > kernel_w"
    assert FaultCondition().holds({})
    assert str(FaultCondition()) == "always"
