from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest

from edgeflare import installed_classes
from edgeflare.errors import UserError
from edgeflare.installed_classes import InstalledClasses


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
        monkeypatch.setattr(installed_classes, "entry_points", lambda **_group: entries)
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
    monkeypatch.setattr(installed_classes, "entry_points", lambda **_group: entries)
    found = InstalledClasses[object]("edgeflare.domains", "domain", object).find("image")
    assert found.__module__ == "edgeflare.domains.image.image_domain"
