"""Classes that packages install, and how they are made of settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any, Literal

import pytest

from edgeflare import class_registry
from edgeflare.class_registry import InstalledClasses
from edgeflare.errors import UserError
from edgeflare.keyword_settings import constructed


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...


class Square(Shape):
    def area(self) -> float:
        return 1.0


class Unfinished(Shape):
    pass


Known = Callable[..., InstalledClasses[Shape]]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    """Make the classes of a group whose entry points are given, by name."""

    def make(**values: str) -> InstalledClasses[Shape]:
        entries = [EntryPoint(name, value, "shapes") for name, value in values.items()]
        monkeypatch.setattr(class_registry, "entry_points", lambda **_group: entries)
        return InstalledClasses[Shape]("shapes", "shape", Shape)

    return make


def test_classes_are_found_by_name_and_imported_when_they_are_asked_for(known: Known) -> None:
    shapes = known(square=f"{__name__}:Square", absent="no_such_module:Shape")
    assert shapes.names() == ("absent", "square")
    assert shapes.find("square") is Square


def test_an_unknown_name_is_answered_with_the_nearest(known: Known) -> None:
    with pytest.raises(UserError, match=r"unknown shape 'sqare'; did you mean 'square'\?"):
        known(square=f"{__name__}:Square").find("sqare")


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("no_such_module:Shape", "it does not load (ModuleNotFoundError: No module named"),
        (f"{__name__}:Unfinished", "Unfinished has no method area;"),
        (f"{__name__}:Known", f"Known is no subclass of {__name__}.Shape;"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(value: str, complaint: str, known: Known) -> None:
    with pytest.raises(UserError) as refused:
        known(broken=value).find("broken")
    said = str(refused.value)
    assert complaint in said
    assert said.endswith("correct or uninstall the package")
    assert "\n" not in said


def test_of_one_name_that_of_this_package_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        EntryPoint("image", "a_package:Theirs", "edgeflare.domains"),
        EntryPoint(
            "image", "edgeflare.domains.image.image_domain:ImageDomain", "edgeflare.domains"
        ),
    ]
    monkeypatch.setattr(class_registry, "entry_points", lambda **_group: entries)
    found = InstalledClasses[object]("edgeflare.domains", "domain", object).find("image")
    assert found.__module__ == "edgeflare.domains.image.image_domain"


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
