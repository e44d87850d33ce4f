"""What the methods of a repair say of candidates, as parts of the page, whatever their keys are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgeflare.repair.page.page_part import PagePart, PageTable
from edgeflare.repair.page.shift_parts import shift_parts
from edgeflare.report.arm_lines import details
from edgeflare.report.entry_names import class_name


def detail_parts(document: Mapping[str, Any]) -> Iterator[PagePart]:
    """Yield a part for each section of the candidates' details.

    Args:
        document: of a repair.

    """
    for number, candidate in enumerate(document["candidates"]):
        for name, values in candidate["details"].items():
            if not isinstance(values, Mapping):
                values = {name: values}  # noqa: PLW2901 - one value is a section of one
            if name == "shifts":
                yield from shift_parts(values, document["classes"], f"-{number}")
                values = {  # noqa: PLW2901 - the rest
                    key: one for key, one in values.items() if key not in ("repairers", "shifts")
                }
            yield PagePart(
                f"{name}-facts-{number}",
                f"{name.capitalize()}: {candidate['name']}",
                "",
                [
                    _table(key, rows, document["classes"])
                    for key, value in values.items()
                    if (rows := _rows(value))
                ],
                details({key: value for key, value in values.items() if not _rows(value)}),
            )


def _rows(value: Any) -> list[Mapping[str, Any]]:
    """Return the rows of what can be a table: objects in a list, or by name in an object."""
    if isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values()):
        return [{"": name, **one} for name, one in value.items()]
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        return value
    return []


def _table(title: str, rows: Sequence[Mapping[str, Any]], classes: Sequence[str]) -> PageTable:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return PageTable(
        _words(title),
        [_words(key) for key in keys],
        [[_cell(key, row.get(key), classes) for key in keys] for row in rows],
    )


def _cell(key: str, value: Any, classes: Sequence[str]) -> str:
    if key == "classes" and isinstance(value, list):
        named = [class_name(classes, one) if isinstance(one, int) else str(one) for one in value]
        return ", ".join(named)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, text in details(value)) or "–"
    return ", ".join(text for _, text in details({key: value})) or "–"


def _words(key: str) -> str:
    return key.replace("_", " ")
