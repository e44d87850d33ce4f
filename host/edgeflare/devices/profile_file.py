"""One profile file: TOML, every key checked; a complaint names file, key and what is expected."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular
from edgeflare.suggestion import suggestion
from edgeflare_protos.limits import (
    LEAST_INPUT_TIMEOUT_SECONDS,
    MOST_INPUT_TIMEOUT_SECONDS,
    MOST_STORE_MB,
    MOST_THREADS,
    MOST_WARMUP,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 2**20
"""Of a profile, which may be a stranger's."""


def read_profile_file(path: Path) -> dict[str, object]:
    """Return what a profile file says, every value checked; paths are relative to its folder.

    Raises:
        UserError: it cannot be read, is no TOML, or a key or a value is not what it may be.

    """
    try:
        table = tomllib.loads(read_regular(path, MOST_BYTES).decode())
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: is not valid TOML: {error}") from None
    return {key: _checked(path, key, value) for key, value in table.items()}


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT"; an IPv6 host stands in brackets.

    Raises:
        ValueError: it is no such address; the message says what is expected.

    """
    host, _, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    usable = bool(host) and (bracketed or not set(host) & set(":/ "))
    if not usable or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ValueError("expected HOST:PORT")
    return host.strip("[]"), int(port)


def _checked(path: Path, key: str, value: object) -> object:
    if key not in _KEYS:
        hint = suggestion(key, _KEYS, 'did you mean "{}"? ')
        raise UserError(f'{path}: unknown key "{key}"; {hint}known keys: {", ".join(_KEYS)}')
    expected, read = _KEYS[key]
    try:
        return read(path.parent, value)
    except ValueError:
        raise UserError(f"{path}: {key} = {_toml(value)}: expected {expected}") from None


def _text(_folder: Path, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _one_of(*choices: str) -> _Key:
    def read(_folder: Path, value: object) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return "one of " + ", ".join(f'"{choice}"' for choice in choices), read


def _whole_number(least: int, most: int | None = None) -> _Key:
    def read(_folder: Path, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        if value < least or (most is not None and value > most):
            raise ValueError
        return value

    if most is None:
        return f"a whole number of at least {least}", read
    return f"a whole number from {least} to {most}", read


def _number(least: float, most: float) -> _Key:
    def read(_folder: Path, value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError
        if not least <= value <= most:  # so that NaN fails too
            raise ValueError
        return float(value)

    return f"a number from {least:g} to {most:g}", read


def _address(folder: Path, value: object) -> str:
    address = _text(folder, value)
    split_address(address)
    return address


def _host(folder: Path, value: object) -> str:
    host = _text(folder, value)
    if host.startswith("-") or set(host) & set(" \t\n"):
        raise ValueError
    return host


def _folder(folder: Path, value: object) -> str:
    path = _text(folder, value)
    if not path.startswith("/") or path.rstrip("/") == "":
        raise ValueError
    return path.rstrip("/")


def _runtime(folder: Path, value: object) -> str:
    text = _text(folder, value)
    name, pinned, version = text.partition("==")
    if name not in {"litert", "tflite-runtime"} or bool(pinned) != bool(version):
        raise ValueError
    return text


def _names(folder: Path, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError
    return tuple(_text(folder, name) for name in value)


def _texts(_folder: Path, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError
    return value


def _path(folder: Path, value: object) -> Path:
    return folder.absolute() / os.path.expanduser(_text(folder, value))


def _command(folder: Path, value: object) -> str:
    """Accept a command on PATH, or the path of a program."""
    text = _text(folder, value)
    return str(_path(folder, text)) if "/" in text else text


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


_Key = tuple[str, Callable[[Path, object], object]]
"""What is expected of a key's value, and a reader that raises ValueError if it is not that."""

_MOST_LINK_DELAY_MS = 60_000.0
"""A minute: beyond it, a link counts as lost."""

_MOST_CELSIUS = 200.0
"""Silicon does not survive it."""

_KEYS: dict[str, _Key] = {
    "description": ("a text", _text),
    "extends": ("the name of another profile", _text),
    "transport": _one_of("emulated", "qemu", "adb", "ssh", "address"),
    "kernels": _one_of("xnnpack", "builtin", "reference"),
    "threads": _whole_number(1, MOST_THREADS),
    "delegate": ("the path of a library on the device", _text),
    "delegate_options": ("a table of texts", _texts),
    "warmup": _whole_number(0, MOST_WARMUP),
    "input_timeout_seconds": _number(LEAST_INPUT_TIMEOUT_SECONDS, MOST_INPUT_TIMEOUT_SECONDS),
    "canary_every": _whole_number(least=0),
    "pause_above_celsius": _number(1, _MOST_CELSIUS),
    "thermal_zones": ('a list of names, for example ["cpu-thermal", "cpu*"]', _names),
    "python": ("a command on PATH or the path of a Python interpreter", _command),
    "link_delay_ms": _number(0, _MOST_LINK_DELAY_MS),
    "runtime": ('a runtime, "litert" or "tflite-runtime", perhaps with "==VERSION"', _runtime),
    "cpu": ('a core that QEMU knows, for example "cortex-a72"', _text),
    "serial": ("what `adb devices` calls the device", _text),
    "host": ('what `ssh` is to connect to, "[USER@]HOST[:PORT]"', _host),
    "cache": ("the absolute path of a folder on the device", _folder),
    "cache_limit_mb": _whole_number(1, MOST_STORE_MB),
    "address": ('an address, "HOST:PORT"', _address),
    "tls_ca": ("the path of a PEM file", _path),
    "token_file": ("the path of a file", _path),
}
