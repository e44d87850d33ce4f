"""The conditions that there are: ours, and those of other installed packages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from edgeflare.conditions.condition import Condition
from edgeflare.errors import UserError
from edgeflare.installed_classes import complaint, is_foreign

GROUP = "edgeflare.conditions"
"""The group of entry points; each names a module that holds conditions."""

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
"""What a condition, a set, or either in a file of conditions may be called."""

RESERVED = ("none", "unchanged")
"""Names that are no condition's: the first is said instead of names, and the second means inputs as
they are."""

_WHAT = "conditions"


def conditions_of(domain: str) -> tuple[Condition, ...]:
    """Return all conditions of a domain that are installed, ours first.

    Raises:
        UserError: an installed package's conditions cannot be used.

    """
    return tuple(one for one in all_conditions() if one.domain == domain)


def own_conditions(domain: str) -> tuple[Condition, ...]:
    """Return our conditions of a domain; no other package is imported.

    Raises:
        UserError: edgeflare is not installed.

    """
    return tuple(one for one in _ours() if one.domain == domain)


@cache
def all_conditions() -> tuple[Condition, ...]:
    """Return the conditions of all domains, ours first, each in the order of its module.

    Raises:
        UserError: an installed package's conditions do not load, or have a name that they cannot
            have, such as one that another condition of the domain has.

    """
    return _united(_ours(), (entry for entry in _entries() if is_foreign(entry)))


def package_of(condition: Condition) -> str:
    """Return name and version of the package of others that brings a condition; empty for ours.

    Raises:
        UserError: an installed package's conditions cannot be used.

    """
    if condition in _ours():
        return ""
    for entry in filter(is_foreign, _entries()):
        if condition in _load(entry):
            return entry.value if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    return ""


def name_fault(name: str) -> str:
    """Return what is wrong with the name of a condition or a set; empty where nothing is."""
    if name in RESERVED:
        return f"the name {name!r} has another meaning: take another one"
    if not NAME.fullmatch(name):
        return f"{name!r} is no name: it has to be lower case letters, digits and hyphens"
    return ""


@cache
def _ours() -> tuple[Condition, ...]:
    entries = [entry for entry in _entries() if not is_foreign(entry)]
    if not entries:
        raise UserError(
            f"edgeflare is not installed as it is (no entry point of {GROUP} is its own), so it"
            " has no conditions: run `pip install -e .` in its checkout"
        )
    return _united((), entries)


def _entries() -> list[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))


def _united(known: tuple[Condition, ...], entries: Iterable[EntryPoint]) -> tuple[Condition, ...]:
    """Return conditions, and those of modules that entry points name behind them.

    Raises:
        UserError: see `all_conditions`.

    """
    united = {(one.domain, one.name): one for one in known}
    for entry in entries:
        for one in _load(entry):
            if united.setdefault((one.domain, one.name), one) is not one:
                why = f"there is another condition of {one.domain} named '{one.name}'"
                raise UserError(complaint(entry, _WHAT, why))
    return tuple(united.values())


def _load(entry: EntryPoint) -> tuple[Condition, ...]:
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        why = f"they do not load ({type(error).__name__}: {error})"
        raise UserError(complaint(entry, _WHAT, " ".join(why.split()))) from error
    found = vars(loaded).values() if isinstance(loaded, ModuleType) else ()
    conditions = tuple(one for one in found if isinstance(one, Condition))
    if not conditions:
        why = f"{entry.value} is no module that holds conditions: decorate functions by @condition"
        raise UserError(complaint(entry, _WHAT, why))
    for name in (name for one in conditions for name in (one.name, *one.sets)):
        if why := name_fault(name):
            raise UserError(complaint(entry, _WHAT, why))
    return conditions
