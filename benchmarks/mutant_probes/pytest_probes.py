"""A plugin of pytest that says which test is at work, for `mutants.py`, and how long each took."""

from __future__ import annotations

import json
import mmap
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(os.environ["PROBES_OF_MUTANTS"])
SIZE = 1024

_seconds: defaultdict[str, float] = defaultdict(float)
_path = FOLDER / f"test-{os.getpid()}"
_path.write_bytes(bytes(SIZE))
os.environ["PROBE_OF_TEST"] = str(_path)
with _path.open("r+b") as _file:
    _current = mmap.mmap(_file.fileno(), SIZE)


def _say(test: str) -> None:
    _current[:] = test.encode()[:SIZE].ljust(SIZE, b"\0")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Say the test."""
    _say(item.nodeid)
    try:
        return (yield)
    finally:
        _say("")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Say the file where the fixture is for more than a test."""
    if fixturedef.scope == "function":
        return (yield)
    before = _current[:]
    _say(request.node.nodeid or before.rstrip(b"\0").decode().partition("::")[0])
    try:
        return (yield)
    finally:
        _current[:] = before


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what a test took; in the process that hears of all tests, with xdist."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        _seconds[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    """Write what tests took."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        lines = (json.dumps([test, round(spent, 3)]) for test, spent in _seconds.items())
        with (FOLDER / "seconds").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
