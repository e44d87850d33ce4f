from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from edgeflare.errors import UserError
from edgeflare.keyword_settings import constructed


class Sieve:
    def __init__(
        self, holes: int, mesh: tuple[float, ...] = (1.0,), kind: Literal["fine", "coarse"] = "fine"
    ) -> None:
        if holes < 1:
            raise UserError(f"holes has to be 1 or more, not {holes}")
        self.told = (holes, mesh, kind)


def test_values_are_taken_in_the_types_of_the_annotations() -> None:
    assert constructed(Sieve, {"holes": 3}, "[sieve]").told == (3, (1.0,), "fine")
    made = constructed(Sieve, {"holes": 3, "mesh": [1, 2.5], "kind": "coarse"}, "[sieve]")
    assert made.told == (3, (1.0, 2.5), "coarse")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "[sieve]: holes is missing"),
        (
            {"hole": 3},
            "[sieve]: unknown key hole (did you mean 'holes'?); keys are holes, mesh, kind",
        ),
        ({"holes": "3"}, "[sieve]: holes is '3': expected `int`, got `str`"),
        ({"holes": 3, "kind": "odd"}, "[sieve]: kind is 'odd': expected 'fine' or 'coarse'"),
        ({"holes": 0}, "[sieve]: holes has to be 1 or more, not 0"),
    ],
)
def test_what_is_wrong_is_one_line(
    settings: dict[str, Any], words: str, refusal: Callable[..., str]
) -> None:
    assert words in refusal(constructed, Sieve, settings, "[sieve]")


def test_a_function_is_called_as_a_class_is() -> None:
    def doubled(one: int, by: int = 2) -> int:
        return one * by

    assert constructed(doubled, {"one": 4}, "here") == 8
