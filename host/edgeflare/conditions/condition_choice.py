"""Which conditions a survey is about, and at which severities: what a user says of it, read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare.conditions.condition import SEVERITIES, Condition
from edgeflare.conditions.condition_registry import (
    all_conditions,
    condition_complaints,
    conditions_of,
    name_fault,
    own_conditions,
)
from edgeflare.errors import UserError, path_suggestion, suggestion
from edgeflare.keyword_settings import constructed
from edgeflare.outside_text import read_toml

_TABLES = "conditions"
"""The one key of a file: `[[conditions]]` begins a table."""

DEFAULT_SET = "common"
"""The set of a domain that is taken where nothing is said."""

NO_CONDITIONS = "none"
"""Stands for no conditions: the inputs as they are."""

_RANGE = re.compile(r"([1-5])(?:-([1-5]))?")


@dataclass(frozen=True, slots=True)
class ChosenCondition:
    """A condition of a survey.

    Attributes:
        name: as the survey calls it: its own, unless a file gives it another.
        condition: what makes the inputs.
        severities: severities at which it is surveyed, rising.

    """

    name: str
    condition: Condition
    severities: tuple[int, ...]


def chosen_conditions(
    domain: str, text: str | None, severities: Sequence[int] = SEVERITIES
) -> tuple[ChosenCondition, ...]:
    """Return the conditions that a user chose, each once.

    Packages of others are imported only where a name is none of ours.

    Args:
        domain: name of the inputs' domain.
        text: names of sets and conditions, separated by commas; or `none`, or the path of a file
            that ends with `.toml`; or None for our set `DEFAULT_SET`, where the domain has one.
        severities: severities of all conditions but those for which a file says others.

    Raises:
        UserError: a name is unknown or of another domain, or the domain has no conditions, or the
            file says something else than it may.

    """
    at = tuple(sorted(set(severities)))
    if text == NO_CONDITIONS:
        return ()
    if text is None:
        chosen = [
            condition for condition in own_conditions(domain) if DEFAULT_SET in condition.sets
        ]
    elif text.strip().endswith(".toml") and "," not in text:
        return _of_file(domain, Path(text.strip()), at)
    else:
        names = [name.strip() for name in text.split(",")]
        if not all(names):
            raise UserError(f"--conditions {text!r}: expected names separated by commas")
        for name in names:
            if name == NO_CONDITIONS:
                raise UserError(f"--conditions {text!r}: {name} stands alone, without other names")
            if name.endswith(".toml"):
                raise UserError(
                    f"--conditions {text!r}: a file stands alone, without other names: add a table"
                    f" [[{_TABLES}]] to {name} for each of them"
                )
        chosen = [condition for name in names for condition in _found(domain, name, "--conditions")]
    return tuple(
        ChosenCondition(condition.name, condition, at) for condition in dict.fromkeys(chosen)
    )


def conditions_of_set(domain: str, name: str) -> tuple[Condition, ...]:
    """Return what `--conditions` takes for the name of a set; nothing where it is none."""
    for known in (own_conditions, conditions_of):
        found = tuple(condition for condition in known(domain) if name in condition.sets)
        if found:
            return found
    return ()


def read_severities(text: str) -> tuple[int, ...]:
    """Return severities, rising, each once.

    Args:
        text: numbers and ranges separated by commas, such as `1-5`, `3` or `1,3,5`.

    Raises:
        UserError: it is something else, or one is not from 1 to 5.

    """
    chosen: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if first > last:
            raise UserError(
                f"--severities {text}: expected whole numbers from 1 to 5, as in 1-5, 3 or 1,3,5"
            )
        chosen.update(range(int(first), int(last) + 1))
    return tuple(sorted(chosen))


def _of_file(domain: str, path: Path, severities: tuple[int, ...]) -> tuple[ChosenCondition, ...]:
    chosen = []
    for number, table in enumerate(read_condition_file(path), 1):
        where = f"{path}: condition {number}:"
        found = _found(domain, table.condition, where)
        if table.condition not in (condition.name for condition in found):
            members = ", ".join(condition.name for condition in found)
            raise UserError(f"{where} {table.condition!r} is a set: name one of {members}")
        at = severities if table.severities is None else tuple(sorted(set(table.severities)))
        chosen.append(ChosenCondition(table.name or table.condition, found[0], at))
    sets = {name for condition in conditions_of(domain) for name in condition.sets}
    for chosen_condition in chosen:
        if chosen_condition.name in sets:
            raise UserError(
                f"{path}: {chosen_condition.name!r} is the name of a set: give another name"
            )
    name, times = Counter(chosen_condition.name for chosen_condition in chosen).most_common(1)[0]
    if times > 1:
        raise UserError(f"{path}: {times} conditions are named {name!r}: give each its own name")
    return tuple(chosen)


def _found(domain: str, name: str, where: str) -> tuple[Condition, ...]:
    """Return the condition of a name, or those of a set; a condition before a set."""
    for known in (own_conditions, conditions_of):
        named = tuple(condition for condition in known(domain) if condition.name == name)
        found = named or tuple(condition for condition in known(domain) if name in condition.sets)
        if found:
            return found
    left_out = "".join(
        f"; left out: {condition_complaint}" for condition_complaint in condition_complaints()[:1]
    )
    raise UserError(f"{where} {_unknown(domain, name)}{left_out}")


def _unknown(domain: str, name: str) -> str:
    """Return what is wrong with a name that is none of a domain's, and what to say instead."""
    known = conditions_of(domain)
    if not known:
        return f"{name}: there are no conditions of the domain {domain}: use --conditions none"
    sets = sorted({set_name for condition in known for set_name in condition.sets})
    its = f"its sets are {', '.join(sets)}, and " if sets else ""
    listed = f"{its}`edgeflare conditions {domain}` lists all"
    for condition in all_conditions():
        if name == condition.domain:
            return f"{name}: a domain, and no condition; {listed}"
        if name == condition.name or name in condition.sets:
            what = "condition" if name == condition.name else "set"
            return f"{name}: a {what} of the domain {condition.domain}, not of {domain}; {listed}"
    names = [*sets, *(condition.name for condition in known), NO_CONDITIONS]
    like = suggestion(name.lower(), names)
    return f"{name}: no condition or set of the domain {domain} has that name{like}; {listed}"


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
        if key != _TABLES:
            like = suggestion(key, [_TABLES])
            raise UserError(f"{path}: unknown key {key}{like}: begin each table by [[{_TABLES}]]")
    tables = content.get(_TABLES)
    if not (
        isinstance(tables, list) and tables and all(isinstance(table, dict) for table in tables)
    ):
        raise UserError(f'{path}: write a table [[{_TABLES}]] with condition = "NAME" for each')
    return tuple(
        _table(table, f"{path}: condition {number}") for number, table in enumerate(tables, 1)
    )


def _has_tables(path: Path) -> bool:
    """Whether a path is that of a file of conditions; other files may end with .toml too."""
    try:
        return path.suffix == ".toml" and _TABLES in read_toml(path)
    except (OSError, UserError):
        return False


def _table(table: Mapping[str, Any], where: str) -> ConditionTable:
    """Return what a table says."""
    severities = table.get("severities", [])
    if type(severities) is not list or any(type(severity) is not int for severity in severities):
        raise UserError(
            f"{where}: severities is {severities!r}: write whole numbers from 1 to 5 in a list, as"
            " in severities = [1, 2, 3]"
        )
    return constructed(ConditionTable, table, where)
