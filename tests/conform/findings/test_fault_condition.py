from __future__ import annotations

from collections.abc import Mapping

import pytest

from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.specification.settings import Setting

MODEL: Mapping[str, Setting] = {"stride_w": 3, "kernel_w": 2, "padding": "SAME"}


def test_a_condition_holds_where_all_of_its_predicates_do() -> None:
    both = FaultCondition.parsed(["stride_w > kernel_w", "padding is SAME"])
    assert both.holds(MODEL)
    assert not both.holds({**MODEL, "padding": "VALID"})
    assert not both.holds({**MODEL, "stride_w": 2})


def test_a_condition_without_predicates_holds_always() -> None:
    assert FaultCondition().holds({})
    assert str(FaultCondition()) == "always"


def test_a_condition_does_not_depend_on_the_order_of_its_predicates() -> None:
    one = FaultCondition.parsed(["stride_w > kernel_w", "padding is SAME"])
    assert one == FaultCondition.parsed([*reversed(one.texts), "padding is SAME"])
    assert str(one) == "padding is SAME, stride_w > kernel_w"


def test_a_text_that_is_no_predicate_is_refused() -> None:
    with pytest.raises(ValueError, match="'padding'"):
        FaultCondition.parsed(["padding"])
