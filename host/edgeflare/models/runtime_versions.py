"""Released versions of TFLite's runtime, each in an environment that pip fills once.

They lie beside each other in `~/.cache/edgeflare/runtimes`, a folder for each version. Which index
pip asks is the user's own configuration. Nothing but the runtime, what the agent needs beside it,
and numpy is installed, from wheels alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from edgeflare.errors import InfrastructureError, UserError

ALL: Final = "all"
"""The word for the last of each minor version that there is for this Python."""

PACKAGES: Final = ("ai-edge-litert", "tflite-runtime")
"""What has the runtime, the later one first; of a version that both have it is meant."""

_MODULES: Final = {"ai-edge-litert": "ai_edge_litert", "tflite-runtime": "tflite_runtime"}

_BESIDE: Final = ("grpcio", "grpcio-health-checking", "protobuf")
"""What the agent needs beside a runtime, in the versions that the host has."""

_UNDECLARED: Final = (2, 1)
"""The version of ai-edge-litert whose compiled models import ml-dtypes, and whose wheel does not
say so."""

_NUMPY_2: Final = (1, 1)
"""First version of ai-edge-litert that was built for numpy 2: with it the ones before die."""

_VERSION: Final = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,3}")
_PYTHONS: Final = tuple(f"python3.{minor}" for minor in range(13, 9, -1))
_NO_WHEEL: Final = "No matching distribution found"
_NO_INDEX: Final = "(from versions: none)"
"""What pip says where no package answers, and where none of its wheels is for a Python."""

_SECONDS: Final = 900.0


def is_version(text: str) -> bool:
    """Tell whether a text is a version: digits and dots."""
    return _VERSION.fullmatch(text) is not None


def read_versions(text: str) -> tuple[str, ...]:
    """Return the versions that an option names, each once, in its order.

    Args:
        text: "2.1.6,2.2.0", or "all".

    Raises:
        UserError: one is no version; or pip names none for "all".

    """
    if text.strip() == ALL:
        return last_of_each_minor(_released(PACKAGES[0]))
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not is_version(name):
            raise UserError(
                f"--versions {text}: {name!r} is no version: write some as 2.1.6,2.2.0, or {ALL}"
            )
    return tuple(dict.fromkeys(names))


def last_of_each_minor(versions: Sequence[str]) -> tuple[str, ...]:
    """Return the last version of each minor one, the oldest first."""
    last: dict[tuple[int, ...], str] = {}
    for name in sorted(filter(is_version, versions), key=_numbers):
        last[_numbers(name)[:2]] = name
    return tuple(last.values())


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))


def installed_version() -> tuple[str, str]:
    """Return package and version of the runtime that this Python has."""
    for package in PACKAGES:
        try:
            return package, version(package)
        except PackageNotFoundError:
            continue
    return PACKAGES[0], ""


def runtime_python(name: str, tell: Callable[[str], None] = lambda _: None) -> Path:
    """Return the Python that has a version of the runtime; make its environment if there is none.

    Args:
        name: the version.
        tell: is told what is installed.

    Raises:
        UserError: no Python here has a wheel of it, or there is no pip.
        InfrastructureError: pip fails otherwise.

    """
    if name == installed_version()[1]:
        return Path(sys.executable)
    folder = environments() / name
    python = folder / "bin" / "python"
    if not python.exists():
        tell(f"installing the runtime {name} into {folder}, once")
        _make(name, folder)
    return python


def environments() -> Path:
    """Return the folder of all environments."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "edgeflare" / "runtimes"


def package_of(python: Path) -> str:
    """Return which of the packages an environment has."""
    found = [
        package
        for package in PACKAGES[1:]
        if any(python.parents[1].glob(f"lib/python*/site-packages/{_MODULES[package]}"))
    ]
    return found[0] if found else PACKAGES[0]


def _make(name: str, folder: Path) -> None:
    if find_spec("pip") is None:
        raise UserError(f"{name}: pip is not installed, which would install it: add python3-pip")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(prefix=f".{name}-", dir=folder.parent))
    except OSError as error:
        raise InfrastructureError(f"{folder.parent}: cannot be written: {error.strerror}") from None
    try:
        _fill(name, made)
        _put(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _put(made: Path, folder: Path) -> None:
    """Put an environment in its place, where there may be one whose Python is gone."""
    broken = made.with_name(f"{made.name}-broken")
    try:
        if folder.exists() and not (folder / "bin" / "python").exists():
            folder.rename(broken)
        made.rename(folder)
    except OSError as error:
        if not (folder / "bin" / "python").exists():  # otherwise another process made it meanwhile
            raise InfrastructureError(f"{folder}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(broken, ignore_errors=True)


def _fill(name: str, folder: Path) -> None:
    """Install a version with the first Python and package of which there is a wheel."""
    pythons = tuple(_pythons())
    finds_any = False
    for package in PACKAGES:
        for command in pythons:
            _call([command, "-m", "venv", "--clear", "--without-pip", str(folder)])
            why_not = _installed(package, name, folder)
            if why_not is None:
                return
            finds_any |= _NO_INDEX not in why_not
    if not finds_any:
        raise InfrastructureError(
            f"{name}: pip finds no {' or '.join(PACKAGES)} at all: is there a network?"
        )
    has = ", ".join(_python_version(command) for command in pythons)
    raise UserError(f"{name}: there is no wheel of {' or '.join(PACKAGES)} {name} for Python {has}")


def _installed(package: str, name: str, folder: Path) -> str | None:
    """Install a version; return what pip says where the environment's Python has no wheel of it."""
    python = str(folder / "bin" / "python")
    beside = [f"{needed}=={version(needed)}" for needed in _BESIDE]
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    pip += ["install", "--quiet", "--only-binary", ":all:"]
    done = _call([*pip, f"{package}=={name}"], fails=True)
    if done.returncode:
        if _NO_WHEEL in done.stderr:
            return done.stderr
        raise InfrastructureError(f"{name}: pip cannot install it: {_first_error(done.stderr)}")
    old = package != PACKAGES[0] or _numbers(name) < _NUMPY_2
    beside += ["ml-dtypes"] if _numbers(name)[:2] == _UNDECLARED else []
    _call([*pip, "numpy<2" if old else "numpy", *beside])
    return None


def _call(command: Sequence[str], *, fails: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command; one that `fails` may."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"{' '.join(command[:4])} failed: {error}") from None
    if done.returncode and not fails:
        raise InfrastructureError(f"{' '.join(command[:4])} failed: {_first_error(done.stderr)}")
    return done


def _first_error(text: str) -> str:
    lines = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.strip()]
    errors = [line for line in text.splitlines() if line.startswith("ERROR: ")]
    return errors[0].removeprefix("ERROR: ") if errors else "".join(lines[-1:])


def _pythons() -> Iterator[str]:
    """Yield the Pythons of this machine: the one that runs this, and others on PATH."""
    yield sys.executable
    for name in _PYTHONS:
        command = shutil.which(name)
        if command is None or name == f"python3.{sys.version_info[1]}":
            continue
        if _python_version(command):
            yield command


@cache
def _python_version(command: str) -> str:
    """Return the version of a Python; empty where the command is none that runs."""
    said = "import sys, venv; print('.'.join(map(str, sys.version_info[:2])))"
    done = _call([command, "-c", said], fails=True)
    return done.stdout.strip() if not done.returncode else ""


def _released(package: str) -> tuple[str, ...]:
    """Return the released versions that pip names for this Python."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    done = _call([*pip, "index", "versions", package], fails=True)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if found is None:
        raise UserError(
            f"--versions {ALL}: pip names no version of {package}: write them, as 2.1.6,2.2.0"
        )
    return tuple(part.strip() for part in found[1].split(","))
