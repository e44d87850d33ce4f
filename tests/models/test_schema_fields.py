"""Fields of the classes of the schema, those of today's and what a later one may add."""

from __future__ import annotations

from typing import Any

import pytest
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import number_types  # type: ignore[import-untyped]

from edgeflare.models.schema_fields import fields_of

CLASSES = [name[:-1] for name in vars(schema) if name[-1] == "T" and hasattr(schema, name[:-1])]


def test_every_field_of_every_class_is_known() -> None:
    assert len(CLASSES) > 100
    for name in CLASSES:
        attributes = list(vars(getattr(schema, f"{name}T")()))
        assert [one.name for one in fields_of(name)] == attributes
        assert len({one.slot for one in fields_of(name)}) == len(attributes)


def test_the_classes_of_a_union_are_known_by_their_numbers() -> None:
    unions = {
        one.name: one.of for name in CLASSES for one in fields_of(name) if one.kind == "union"
    }
    assert unions["details"][1] == "CustomQuantization"
    assert unions["arraySegments"] == unions["arrayIndices"]
    assert unions["builtinOptions"][11] == "AddOptions"
    for classes in unions.values():
        assert all(hasattr(schema, f"{name}T") for name in classes.values())


class LaterT:
    """What a later schema may have."""

    def __init__(self) -> None:
        self.count, self.words, self.choice = 0, None, None


class Later:
    """Accessors as the generator writes them."""

    _tab: Any

    def Count(self) -> object:  # noqa: N802
        self._tab.Offset(4)
        return self._tab.Get(number_types.Int32Flags, 0)

    def Words(self, _: int) -> object:  # noqa: N802
        return self._tab.String(self._tab.Vector(self._tab.Offset(6)))

    def WordsLength(self) -> int:  # noqa: N802
        return 0

    def Choice(self) -> None:  # noqa: N802
        self._tab.Union(None, self._tab.Offset(8))


def test_a_field_that_cannot_be_known_is_left_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "Later", Later, raising=False)
    monkeypatch.setattr(schema, "LaterT", LaterT, raising=False)
    assert [one.name for one in fields_of("Later")] == ["count"]
