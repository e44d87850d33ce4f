"""The keys of profiles: what each accepts, and whether it takes the user's trust.

Keys of every profile, and keys that several transports share, stand here; a transport defines its
own beside itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare_protos.kernel_sets import KERNEL_SETS
from edgeflare_protos.limits import (
    LEAST_INPUT_TIMEOUT_SECONDS,
    MOST_INPUT_TIMEOUT_SECONDS,
    MOST_STORE_MIB,
    MOST_THREADS,
    MOST_WARMUP,
)


@dataclass(frozen=True, slots=True)
class AcceptedValues:
    """The values that a key accepts.

    Attributes:
        expected: what they are, as a noun: "a whole number of at least 1".
        read: takes the folder of the profile and what its TOML says, and returns the value; raises
            ValueError where it is none of these.

    """

    expected: str
    read: Callable[[Path, object], object]


@dataclass(frozen=True, slots=True)
class ProfileKey:
    """A key that a profile may set.

    Attributes:
        name: the key.
        accepts: values that the key may have.
        example: a value as an example, where a profile of the transport must set the key; None
            where it need not.
        needs_trust: whether a profile of the working directory that sets it takes the user's trust:
            it starts a program, loads a library, or says who is connected to or shown a token.
        relative_path: whether its value is a path relative to the profile's folder.

    """

    name: str
    accepts: AcceptedValues
    example: str | None = None
    needs_trust: bool = True
    relative_path: bool = False

    def read(self, path: Path, value: object) -> object:
        """Return the value that a profile file sets.

        Raises:
            UserError: the key does not accept it; names the file, the key and what is expected.

        """
        try:
            return self.accepts.read(path.parent, value)
        except ValueError:
            raise unexpected_value(path, self.name, value, self.accepts.expected) from None


def unexpected_value(path: Path, key: str, value: object, expected: str) -> UserError:
    """Return the error of a key whose value is not what is expected."""
    given = f'"{value}"' if isinstance(value, str) else str(value)
    if isinstance(value, bool):
        given = given.lower()  # as TOML writes it
    return UserError(f"{path}: {key} = {given}: expected {expected}")


def text(expected: str) -> AcceptedValues:
    """Accept texts that are not blank."""
    return AcceptedValues(expected, read_text)


def one_of(*choices: str) -> AcceptedValues:
    """Accept one of some texts."""

    def read(_folder: Path, value: object) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return AcceptedValues("one of " + ", ".join(f'"{choice}"' for choice in choices), read)


def whole_number(least: int, most: int | None = None) -> AcceptedValues:
    """Accept whole numbers of a range, both ends included."""

    def read(_folder: Path, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        if value < least or (most is not None and value > most):
            raise ValueError
        return value

    if most is None:
        return AcceptedValues(f"a whole number of at least {least}", read)
    return AcceptedValues(f"a whole number from {least} to {most}", read)


def number(least: float, most: float) -> AcceptedValues:
    """Accept numbers of a range, both ends included, as floats."""

    def read(_folder: Path, value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError
        if not least <= value <= most:  # so that NaN fails too
            raise ValueError
        return float(value)

    return AcceptedValues(f"a number from {least:g} to {most:g}", read)


def path(expected: str) -> AcceptedValues:
    """Accept paths on this host; a relative one is relative to the profile's folder."""
    return AcceptedValues(expected, _read_path)


def read_text(_folder: Path, value: object) -> str:
    """Return a text that is not blank; raises ValueError where it is none."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _device_folder(folder: Path, value: object) -> str:
    path = read_text(folder, value)
    if not path.startswith("/") or path.rstrip("/") == "":
        raise ValueError
    return path.rstrip("/")


def _runtime(folder: Path, value: object) -> str:
    text = read_text(folder, value)
    name, pinned, version = text.partition("==")
    if name not in {"litert", "tflite-runtime"} or bool(pinned) != bool(version):
        raise ValueError
    return text


def _reservation(folder: Path, value: object) -> str:
    text = read_text(folder, value)
    system, _, place = text.partition(":")
    if not system.strip() or not place.strip() or place.startswith("-"):
        raise ValueError
    return text


def _truth(_folder: Path, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _names(folder: Path, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError
    return tuple(read_text(folder, name) for name in value)


def _texts(_folder: Path, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError
    return value


def _read_path(folder: Path, value: object) -> Path:
    return folder.absolute() / os.path.expanduser(read_text(folder, value))


def _command(folder: Path, value: object) -> str:
    """Accept a command on PATH, or the path of a program."""
    text = read_text(folder, value)
    return str(_read_path(folder, text)) if "/" in text else text


_MOST_CELSIUS = 200.0
"""Silicon does not survive it."""

_MOST_ARENA_BYTES = 1 << 28
"""An agent finds how large an arena a model takes by opening it in one of this size first."""

_MOST_SECONDS = 3600
"""An hour: for a model over the slowest link, or a board that is busy."""

EXTENDS = ProfileKey("extends", text("the name of another profile"), needs_trust=False)

COMMON_KEYS = {
    key.name: key
    for key in (
        ProfileKey("description", text("a text"), needs_trust=False),
        EXTENDS,
        ProfileKey("transport", text("the name of a transport"), needs_trust=False),
        ProfileKey("kernels", one_of(*KERNEL_SETS), needs_trust=False),
        ProfileKey("threads", whole_number(1, MOST_THREADS), needs_trust=False),
        ProfileKey("delegate", text("the path of a library on the device")),
        ProfileKey(
            "delegate_options", AcceptedValues("a table of texts", _texts), needs_trust=False
        ),
        ProfileKey("precision", one_of("fp16", "fp32"), needs_trust=False),
        ProfileKey("fallback", AcceptedValues("true or false", _truth), needs_trust=False),
        ProfileKey("arena_bytes", whole_number(1, _MOST_ARENA_BYTES), needs_trust=False),
        ProfileKey("warmup", whole_number(0, MOST_WARMUP), needs_trust=False),
        ProfileKey(
            "input_timeout_seconds",
            number(LEAST_INPUT_TIMEOUT_SECONDS, MOST_INPUT_TIMEOUT_SECONDS),
            needs_trust=False,
        ),
        ProfileKey("connect_timeout_seconds", whole_number(1, _MOST_SECONDS), needs_trust=False),
        ProfileKey("upload_timeout_seconds", whole_number(1, _MOST_SECONDS), needs_trust=False),
        ProfileKey("canary_every", whole_number(least=0), needs_trust=False),
        ProfileKey("pause_above_celsius", number(1, _MOST_CELSIUS), needs_trust=False),
        ProfileKey(
            "thermal_zones",
            AcceptedValues('a list of names, for example ["cpu-thermal", "cpu*"]', _names),
            needs_trust=False,
        ),
        ProfileKey(
            "reservation",
            AcceptedValues('SYSTEM:PLACE, for example "labgrid:board-3"', _reservation),
        ),
    )
}
"""The keys of every profile, in the order in which they are listed."""

PYTHON = ProfileKey(
    "python",
    AcceptedValues("a command on PATH or the path of a Python interpreter", _command),
    relative_path=True,
)

RUNTIME = ProfileKey(
    "runtime",
    AcceptedValues('a runtime, "litert" or "tflite-runtime", perhaps with "==VERSION"', _runtime),
    needs_trust=False,
)

START_TIMEOUT_SECONDS = ProfileKey(
    "start_timeout_seconds", whole_number(1, _MOST_SECONDS), needs_trust=False
)

CACHE = ProfileKey(
    "cache", AcceptedValues("the absolute path of a folder on the device", _device_folder)
)

CACHE_LIMIT_MIB = ProfileKey("cache_limit_mib", whole_number(1, MOST_STORE_MIB), needs_trust=False)

AGENT_DEVICE = ProfileKey("agent_device", text("a name"), needs_trust=False)
