"""The conditions that there are: ours, and those of other installed packages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from types import MappingProxyType, ModuleType

from edgeflare.class_registry import complaint, is_foreign
from edgeflare.conditions.condition import Condition
from edgeflare.errors import UserError
from edgeflare.python_callable import reason
from edgeflare_operators.entry_points import entry_points

ENTRY_POINTS = "edgeflare.conditions"
"""The group of entry points; each names a module that holds conditions."""

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
"""What a condition, a set, or either in a file of conditions may be called."""

RESERVED = ("none", "unchanged")
"""Names that are no condition's: the first is said instead of names, and the second means inputs as
they are."""

_WHAT = "conditions"


def conditions_of(domain: str) -> tuple[Condition, ...]:
    """Return all conditions of a domain that are installed and can be used, ours first."""
    return tuple(condition for condition in all_conditions() if condition.domain == domain)


def own_conditions(domain: str) -> tuple[Condition, ...]:
    """Return our conditions of a domain; no other package is imported."""
    return tuple(condition for condition in _ours() if condition.domain == domain)


def all_conditions() -> tuple[Condition, ...]:
    """Return the conditions of all domains, ours first, each in the order of its module.

    What other packages bring and cannot be used is left out; see `condition_complaints`.
    """
    return (*_ours(), *_others().packages)


def condition_complaints() -> tuple[str, ...]:
    """Return a line for each package of others whose conditions are left out, which says why.

    They do not load, or have a name that they cannot have, such as one that another condition of
    the domain has.
    """
    return _others().complaints


def package_of(condition: Condition) -> str:
    """Return name and version of the package of others that brings a condition; empty for ours."""
    return "" if condition in _ours() else _others().packages.get(condition, "")


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
            f"edgeflare is not installed as it is (no entry point of {ENTRY_POINTS} is its own), so"
            " it has no conditions: run `pip install -e .` in its checkout"
        )
    return tuple(condition for entry in entries for condition in _load(entry))


@dataclass(frozen=True, slots=True)
class _ForeignConditions:
    """What other packages bring.

    Attributes:
        packages: name and version of its package for each condition that can be used.
        complaints: why the others cannot be used.

    """

    packages: Mapping[Condition, str]
    complaints: tuple[str, ...]


@cache
def _others() -> _ForeignConditions:
    """Import what other packages bring; of two conditions with one name, neither can be used."""
    ours = {(condition.domain, condition.name) for condition in _ours()}
    united: dict[tuple[str, str], tuple[Condition, str]] = {}
    contested, complaints = set(ours), []
    for entry in filter(is_foreign, _entries()):
        try:
            loaded = {
                (condition.domain, condition.name): condition
                for condition in _load(entry)
                if condition not in _ours()
            }
        except UserError as error:
            complaints.append(str(error))
            continue
        known = {at for at in loaded if at in united and united[at][0] is not loaded[at]}
        for domain, name in sorted(known | ours.intersection(loaded)):
            why = f"there is another condition of {domain} named '{name}'"
            complaints.append(complaint(entry, _WHAT, why))
        contested |= known
        dist = entry.dist
        package = entry.value if dist is None else f"{dist.name} {dist.version}"
        for at, condition in loaded.items():
            united.setdefault(at, (condition, package))
    packages = dict(brought for at, brought in united.items() if at not in contested)
    return _ForeignConditions(MappingProxyType(packages), tuple(complaints))


def _entries() -> list[EntryPoint]:
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value))


def _load(entry: EntryPoint) -> tuple[Condition, ...]:
    """Return the conditions of the module that an entry point names."""
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        why = f"they do not load ({reason(error)})"
        raise UserError(complaint(entry, _WHAT, why)) from error
    found = vars(loaded).values() if isinstance(loaded, ModuleType) else ()
    conditions = tuple(condition for condition in found if isinstance(condition, Condition))
    if not conditions:
        why = f"{entry.value} is no module that holds conditions: decorate functions by @condition"
        raise UserError(complaint(entry, _WHAT, why))
    for name in (name for condition in conditions for name in (condition.name, *condition.sets)):
        if why := name_fault(name):
            raise UserError(complaint(entry, _WHAT, why))
    return conditions
