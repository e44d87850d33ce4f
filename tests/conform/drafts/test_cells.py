"""Which cells are tested, and valid models of them."""

from __future__ import annotations

import numpy as np
import pytest

from drafting import few_cells
from edgeflare.conform.drafts.cells import chosen_cells, drawn_configuration, with_setting
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.errors import UserError


def test_all_cells_are_those_of_all_operators() -> None:
    cells = chosen_cells()
    assert (
        len(cells) == len(set(cells)) == sum(len(one.types) for one in known_operators().values())
    )


def test_operators_and_types_are_chosen() -> None:
    assert chosen_cells(("RELU", "ADD"), ("int8", "float32")) == (
        ("ADD", "float32"),
        ("ADD", "int8"),
        ("RELU", "float32"),
        ("RELU", "int8"),
    )


@pytest.mark.parametrize(
    ("operators", "types", "words"),
    [
        (("CONV_9D",), (), "no operator CONV_9D"),
        ((), ("float8",), "no type float8"),
        (("RELU",), ("bool",), "RELU does not exist in bool"),
        (("RELU",), ("float32", "bool"), "none of RELU exists in bool"),
    ],
)
def test_what_does_not_exist_is_named(
    operators: tuple[str, ...], types: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UserError, match=words) as raised:
        chosen_cells(operators, types)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("cell", few_cells(), ids=" ".join)
def test_what_is_drawn_is_valid(cell: tuple[str, str]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        drawn = drawn_configuration(cell, rng)
        assert drawn is not None
        assert known_operators()[cell[0]].invalid(cell[1], drawn) is None


def test_what_depends_on_a_setting_follows_it() -> None:
    configuration = {"shape": (2, 3), "perm": (1, 0)}
    longer = with_setting(("TRANSPOSE", "float32"), configuration, "shape", (2, 3, 4))
    assert longer is not None
    assert longer["shape"] == (2, 3, 4)
    assert sorted(longer["perm"]) == [0, 1, 2]  # type: ignore[arg-type]


def test_a_setting_out_of_range_gives_no_configuration() -> None:
    assert with_setting(("RELU", "float32"), {"shape": (2,)}, "shape", (2, -3)) is None
