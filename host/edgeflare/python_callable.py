"""Python functions that a user names: `module:function` or `path/to/file.py:function`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from edgeflare.errors import UserError

USER_ERRORS: Final = (Exception, SystemExit)
"""What a user's own code may raise; a Ctrl-C while it runs is the user's wish to stop."""


def is_callable(source: str) -> bool:
    """Tell whether a source names a Python callable rather than a file."""
    module, _, function = source.rpartition(":")
    return bool(module) and function.isidentifier()


def load_callable(source: str, takes: str) -> Callable[..., Any]:
    """Import the function that a source names.

    Args:
        source: `module:function`, importable from the working directory too, or
            `path/to/file.py:function`.
        takes: what it is to take, for messages.

    Raises:
        UserError: it cannot be imported, or is no function.

    """
    module, _, name = source.rpartition(":")
    found = _imported(module, source, "module:function or path/to/file.py:function")
    function = getattr(found, name, None)
    if function is None:
        raise UserError(f"{source}: {module} has no function {name!r}: check the name")
    if not callable(function):
        raise UserError(f"{source}: {name!r} is not a function: name one that takes {takes}")
    return function  # type: ignore[no-any-return]


def load_module(source: str) -> ModuleType:
    """Import the module that a source names.

    Args:
        source: `path/to/file.py`, or a module, importable from the working directory too.

    Raises:
        UserError: it cannot be imported.

    """
    return _imported(source, source, "a module or path/to/file.py")


def callable_files(source: str) -> tuple[Path, ...]:
    """Return the files whose code runs when a callable is imported, its own last.

    Those of the packages around a module come before it; what they import is not among them.
    Nothing is imported to find them, which `importlib.util.find_spec` would do to packages.

    Returns:
        The files; none where they cannot be determined.

    """
    module = source.rpartition(":")[0]
    if module.endswith(".py"):
        return (Path(module),)
    places: Sequence[str] | None = [os.getcwd(), *sys.path]
    files: list[Path] = []
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        found = None if places is None else _find(name, places)
        if found is None:
            return ()
        if found.has_location and found.origin:
            files.append(Path(found.origin))
        try:
            inside = found.submodule_search_locations
            places = None if inside is None else list(inside)
        except KeyError:  # packages without a file in one another tell only once imported
            return ()
    return tuple(files)


def callable_file(source: str) -> Path | None:
    """Return the file that holds a callable's code, or None where it cannot be determined."""
    return next(reversed(callable_files(source)), None)


def reason(error: BaseException) -> str:
    """Return an exception's type and message on one line."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _imported(module: str, source: str, wanted: str) -> ModuleType:
    """Import a module or file; `source` is what the user gave, `wanted` what to give instead."""
    try:
        return _from_file(Path(module)) if module.endswith(".py") else _from_path(module)
    except UserError:
        raise
    except USER_ERRORS as error:
        raise UserError(
            f"{source}: importing {module} failed: {reason(error)}; give {wanted}"
        ) from error


def _find(name: str, places: Sequence[str]) -> ModuleSpec | None:
    """Ask Python's finders in their order where a module is."""
    for finder in sys.meta_path:
        try:
            found = finder.find_spec(name, places)
        except (ImportError, ValueError, AttributeError, KeyError):  # KeyError: see above
            found = None
        if found is not None:
            return found
    return None


def _from_path(module: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:  # what lies there can be imported, as with `python -m`
        sys.path.insert(0, here)
    finder = _FromSource(module)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(module)
    finally:
        sys.meta_path.remove(finder)


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"there is no Python file {path}: check the path")
    loader = _SourceLoader(path.stem, str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=loader)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} cannot be imported: give a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _SourceLoader(SourceFileLoader):
    """Runs the file that was trusted, never bytecode that lies in `__pycache__` beside it."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - of the base class
        """Compile the source."""
        return self.source_to_code(self.get_data(self.path), self.path)


class _FromSource:
    """Finds a module, and the packages around it, where Python does, to run them from source."""

    def __init__(self, module: str) -> None:
        parts = module.split(".")
        self._names = {".".join(parts[: n + 1]) for n in range(len(parts))}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Ask the other finders in their order; see `importlib.abc.MetaPathFinder`."""
        if name not in self._names:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)
        found = next((spec for spec in specs if spec is not None), None)
        if found is not None and isinstance(found.loader, SourceFileLoader):
            found.loader = _SourceLoader(name, found.loader.path)
        return found
