"""Arguments of calls from Python: their ranges, names of devices, and whether progress is shown.

pytest loads this file in every session, so it imports the rest where that is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from math import inf, isfinite
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from edgeflare.errors import EdgeFlareError, UserError, kind_at_named_path

if TYPE_CHECKING:
    from edgeflare.progress import ProgressDisplay

_Read = TypeVar("_Read")
_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")

_OPTION: Final = re.compile(r"(?<![\w-])--(no-)?([a-z][a-z-]*[a-z])(?![\w-])")


def naming_arguments(call: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
    """Have the errors of a call name its arguments where they name options of the command.

    Most errors come from rooms that a command and a call share, and speak of options. An argument
    has the name of its option; of one that may be given several times it is the plural.
    """
    arguments = signature(call).parameters

    @wraps(call)
    def named(*given: _Given.args, **by_name: _Given.kwargs) -> _Returned:
        __tracebackhide__ = True
        try:
            return call(*given, **by_name)
        except EdgeFlareError as error:
            error.args = (with_arguments(str(error), arguments),)
            raise

    return named


def with_arguments(message: str, arguments: Mapping[str, Parameter]) -> str:
    """Return a message with the arguments in the place of the options that say the same."""

    def argument(option: re.Match[str]) -> str:
        name = option[2].replace("-", "_")
        found = next((one for one in (name, f"{name}s") if one in arguments), None)
        if found is not None and isinstance(arguments[found].default, bool):
            return f"{found}={not option[1]}"
        return option[0] if found is None or option[1] else found

    return _OPTION.sub(argument, message)


def whole_number(name: str, value: object, least: int) -> int:
    """Return an argument as a whole number, also one of numpy's; refuse what is out of its range.

    Raises:
        UserError: it is no whole number within its range; names the argument.

    """
    __tracebackhide__ = True

    from edgeflare.record.json_file import MOST  # noqa: PLC0415

    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if least <= number <= MOST:
            return number
        if number > MOST:
            raise UserError(f"{name}={value!r}: expected a whole number from {least} to {MOST}")
    raise UserError(f"{name}={value!r}: expected a whole number of {least} or more")


def real_number(name: str, value: object, least: float, most: float = inf) -> float:
    """Return an argument as a number, also one of numpy's; refuse what is out of its range.

    Raises:
        UserError: it is no finite number within its range; names the argument.

    """
    __tracebackhide__ = True

    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if isfinite(number) and least <= number <= most:
            return number
    bounds = f"of {least:g} or more" if most == inf else f"from {least:g} to {most:g}"
    raise UserError(f"{name}={value!r}: expected a number {bounds}")


def if_given(read: Callable[..., _Read], name: str, value: object, *rest: float) -> _Read | None:
    """Return an argument that may be None as a function reads it; None for None."""
    __tracebackhide__ = True

    return None if value is None else read(name, value, *rest)


def path_of(name: str, value: str | PathLike[str]) -> Path:
    """Return an argument as a path.

    Raises:
        UserError: it is none; names the argument.

    """
    __tracebackhide__ = True

    if isinstance(value, (str, PathLike)) and isinstance(path := fspath(value), str):
        if "\0" in path:
            raise UserError(f"{name}={path!r}: no path has a null character")
        return Path(path)
    raise UserError(f"{name}: expected a path, not a value of type {type(value).__name__}")


def name_of(name: str, value: object) -> str:
    """Return an argument that is a name.

    Raises:
        UserError: it is no string; names the argument.

    """
    __tracebackhide__ = True

    if isinstance(value, str):
        return value
    raise UserError(f"{name}={value!r}: expected a string")


def names_of(name: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Return one name or several as several.

    Raises:
        UserError: it is neither; names the argument.

    """
    __tracebackhide__ = True

    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable):
        return tuple(name_of(name, each) for each in value)
    raise UserError(f"{name}={value!r}: expected a string or several")


def require_one_of(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse an argument that is none of its values."""
    __tracebackhide__ = True

    if value not in choices:
        raise UserError(f"{name}={value!r}: expected one of {', '.join(choices)}")


def device_names(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of one device or several.

    Raises:
        UserError: they are no names, or none is given.

    """
    __tracebackhide__ = True

    names = names_of("device", value)
    if not names:
        raise UserError("device: no name is given: name a device, or several")
    return names


def require_one_way(out: object, *, overwrite: bool, resume: bool) -> None:
    """Refuse to go on with no folder, or with what is to be replaced.

    Args:
        out: the folder; None for a new one.
        overwrite: whether what is in it is replaced.
        resume: whether it is gone on with.

    """
    __tracebackhide__ = True

    if overwrite and resume:
        raise UserError("resume goes on with what is in the folder, and overwrite removes it")
    if resume and out is None:
        raise UserError("resume has to know the folder: give out too")


@contextmanager
def errors_of_disks() -> Iterator[None]:
    """Say in a line what the system says of a file or a disk, for as long as the context lasts.

    Raises:
        UserError: a path that was named cannot be one.
        InfrastructureError: a disk is full, or fails.

    """
    __tracebackhide__ = True

    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise kind_at_named_path(error)(f"{where}{error.strerror or error}") from error


@contextmanager
def shown_progress(shown: bool) -> Iterator[ProgressDisplay]:
    """Show progress on standard error, as commands do, for as long as the context lasts.

    Args:
        shown: whether anything is shown.

    """
    from rich.console import Console  # noqa: PLC0415

    from edgeflare.progress import observe  # noqa: PLC0415

    # Jupyter would show each line as a thing of its own; on standard error they are one block.
    console = Console(stderr=True, quiet=not shown, force_jupyter=False)
    with observe(console) as display:
        yield display
