"""A file of conditions: a table for each, with its severities and a name of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare.conditions.condition import SEVERITIES
from edgeflare.conditions.condition_registry import name_fault
from edgeflare.errors import UserError
from edgeflare.keyword_settings import constructed
from edgeflare.outside_text import read_toml
from edgeflare.suggestion import path_suggestion, suggestion

TABLES = "conditions"
"""The one key of a file: `[[conditions]]` begins a table."""


@dataclass(frozen=True, slots=True)
class ConditionTable:
    """What a table says.

    Attributes:
        condition: the name of a condition.
        severities: whole numbers from 1 to 5; None where those of the command are meant.
        name: as the survey shall call it; None where it keeps that of the condition.

    """

    condition: str
    severities: tuple[int, ...] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse severities and names that cannot be.

        Raises:
            UserError: a severity is not from 1 to 5, or there is none, or the name is none.

        """
        if self.severities is not None and not set(SEVERITIES).issuperset(self.severities or {0}):
            raise UserError(
                f"severities is {list(self.severities)}: write some of {list(SEVERITIES)}, as in"
                " severities = [1, 2, 3]"
            )
        if self.name is not None and (fault := name_fault(self.name)):
            raise UserError(f"name: {fault}")


def read_condition_file(path: Path) -> tuple[ConditionTable, ...]:
    """Return the tables of a file of conditions, in their order.

    Raises:
        UserError: the file cannot be read or is no TOML, has another key or no table, or a table
            says something else than it may.

    """
    try:
        content = read_toml(path)
    except OSError as error:
        like = path_suggestion(path, _has_tables)
        raise UserError(f"{path}: cannot be read: {error.strerror}{like}") from None
    for key in content:
        if key != TABLES:
            like = suggestion(key, [TABLES])
            raise UserError(f"{path}: unknown key {key}{like}: begin each table by [[{TABLES}]]")
    tables = content.get(TABLES)
    if not (isinstance(tables, list) and tables and all(isinstance(one, dict) for one in tables)):
        raise UserError(f'{path}: write a table [[{TABLES}]] with condition = "NAME" for each')
    return tuple(
        _table(table, f"{path}: condition {number}") for number, table in enumerate(tables, 1)
    )


def _has_tables(path: Path) -> bool:
    """Whether a path is that of a file of conditions; other files may end with .toml too."""
    try:
        return path.suffix == ".toml" and TABLES in read_toml(path)
    except (OSError, UserError):
        return False


def _table(table: Mapping[str, Any], where: str) -> ConditionTable:
    """Return what a table says.

    Raises:
        UserError: it says something else than it may.

    """
    severities = table.get("severities", [])
    if type(severities) is not list or any(type(one) is not int for one in severities):
        raise UserError(
            f"{where}: severities is {severities!r}: write whole numbers from 1 to 5 in a list, as"
            " in severities = [1, 2, 3]"
        )
    return constructed(ConditionTable, table, where)
