"""Classes that installed packages offer by entry points, such as domains and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import EntryPoint
from inspect import isabstract
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from edgeflare.errors import UserError, suggestion
from edgeflare.python_callable import reason
from edgeflare_operators.entry_points import entry_points

Base = TypeVar("Base")


class InstalledClasses(Generic[Base]):
    """The classes of one group of entry points, by name; each is imported when it is asked for."""

    def __init__(self, group: str, what: str, base: type[Any]) -> None:
        """Look into a group.

        Args:
            group: group of the entry points.
            what: a class of it is called in messages.
            base: the abstract class that each has to be a subclass of.

        """
        self._group, self._what, self._base = group, what, base
        self._loaded: dict[str, type[Base]] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of all classes, in their order: ours, then those of others."""
        return tuple(self._entries)

    def find(self, name: str) -> type[Base]:
        """Return the class of a name.

        Raises:
            UserError: there is none, or it cannot be used.

        """
        if name not in self._entries:
            hint = suggestion(name, self._entries, "did you mean {!r}? ")
            raise UserError(
                f"unknown {self._what} {name!r}; {hint}There are {', '.join(self._entries)}."
            )
        if name not in self._loaded:
            self._loaded[name] = load_class(self._entries[name], self._what, self._base)
        return self._loaded[name]

    def package(self, name: str) -> str:
        """Return the package that brings the class of a name, and its version."""
        found = self._entries[name].dist
        return f"{found.name} {found.version}" if found else "unknown"

    def complaint(self, name: str, why: str) -> str:
        """Return the line that says why the class of a name cannot be used."""
        return complaint(self._entries[name], self._what, why)

    @cached_property
    def _entries(self) -> Mapping[str, EntryPoint]:
        """The entry points by name; of one name, that of this package."""
        entries: dict[str, EntryPoint] = {}
        found = sorted(entry_points(group=self._group), key=lambda point: point.name)
        for entry in sorted(found, key=is_foreign):
            entries.setdefault(entry.name, entry)
        return MappingProxyType(entries)


def load_class(entry: EntryPoint, what: str, base: type[Any]) -> type[Any]:
    """Return the class that an entry point names.

    Args:
        entry: the entry point.
        what: a class of its group is called in messages.
        base: the abstract class that it has to be a subclass of.

    Raises:
        UserError: it does not load, or is no such class, or lacks a method.

    """
    try:
        loaded = entry.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        why = f"it does not load ({reason(error)})"
        raise UserError(complaint(entry, what, why)) from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        why = f"{entry.value} is no subclass of {base.__module__}.{base.__qualname__}"
        raise UserError(complaint(entry, what, why))
    if isabstract(loaded):
        missing = min(vars(loaded)["__abstractmethods__"])
        raise UserError(complaint(entry, what, f"{entry.value} has no method {missing}"))
    return loaded


def is_foreign(entry: EntryPoint) -> bool:
    """Whether another package than this one holds what an entry point names."""
    return not entry.value.startswith("edgeflare.")


def complaint(entry: EntryPoint, what: str, why: str) -> str:
    """Return the line that says why what an entry point names cannot be used."""
    package = entry.dist.name if entry.dist else "unknown"
    return f"{what} '{entry.name}' of package {package}: {why}; correct or uninstall the package"
