"""The domains that are installed, by name and by the suffix of their files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from pathlib import PurePath
from types import MappingProxyType

from edgeflare.core.domain import Domain
from edgeflare.errors import UserError
from edgeflare.suggestion import suggestion

ENTRY_POINTS = "edgeflare.domains"
"""The group of entry points under which a package offers the classes of domains."""


def find_domain(name: str) -> Domain:
    """Return the domain of that name.

    Raises:
        UserError: there is none, or an installed package's domain cannot be used.

    """
    entries = _entries()
    if name not in entries:
        hint = suggestion(name, entries, "did you mean {!r}? ")
        raise UserError(f"unknown domain {name!r}; {hint}There are {', '.join(entries)}.")
    return _load(entries[name])()


def domain_names() -> tuple[str, ...]:
    """Return the names of the domains that are installed, in the order of the names."""
    return tuple(_entries())


@cache
def domain_of_file(name: str) -> Domain:
    """Return the domain that stores inputs in files of a name.

    Raises:
        UserError: there is none, or an installed package's domain cannot be used.

    """
    suffix = "".join(PurePath(name).suffixes[-2:])
    for known in domain_names():
        domain = find_domain(known)
        if suffix.endswith(domain.suffix):
            return domain
    raise UserError(f"{name!r} is no file of any domain; there are {', '.join(domain_names())}")


@cache
def _entries() -> Mapping[str, EntryPoint]:
    entries: dict[str, EntryPoint] = {}
    for entry in sorted(
        entry_points(group=ENTRY_POINTS), key=lambda one: (one.name, _is_foreign(one))
    ):
        entries.setdefault(entry.name, entry)
    return MappingProxyType(entries)


def _is_foreign(entry: EntryPoint) -> bool:
    return not entry.value.startswith("edgeflare.")


@cache
def _load(entry: EntryPoint) -> type[Domain]:
    package = entry.dist.name if entry.dist else "unknown"
    remedy = "correct or uninstall the package"
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        raise UserError(
            f"domain {entry.name!r} of package {package}: it does not load"
            f" ({type(error).__name__}: {error}); {remedy}"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Domain)) or isabstract(loaded):
        raise UserError(
            f"domain {entry.name!r} of package {package}: {entry.value} is no complete subclass of"
            f" edgeflare.core.domain.Domain; {remedy}"
        )
    return loaded
