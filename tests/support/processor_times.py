"""Seconds of processor time that files of tests and fixtures take, with all processes they start.

A plugin of pytest. Each worker counts for itself: its own time, that of the processes that it has
waited for, and that of those that still run below it. Daemons that leave their parent, such as
those of adb and Ray, are not among them. Making a fixture that lasts for a file or for a worker
counts for the fixture alone, and not for the file whose test asked for it first; what a worker does
to collect its tests counts for nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

from processes import children, processor_seconds

SHOWN = 20
"""The longest files and fixtures."""

LEAST_SHOWN = 60
"""Seconds in all, so that a run of a few files ends without tables."""


class ProcessorTimes:
    """Seconds by file and by fixture, in a worker; of all workers, in the process that shows them.

    Attributes:
        files: seconds by a file's path.
        fixtures: seconds by a fixture's name and the file that defines it.

    """

    def __init__(self) -> None:
        self.files: defaultdict[str, float] = defaultdict(float)
        self.fixtures: defaultdict[str, float] = defaultdict(float)
        self._counted = 0.0
        self._since = 0.0

    def pytest_collection_finish(self) -> None:
        """Count from here on."""
        self._since = spent_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Count for a file from the end of the one before to its own end."""
        result = yield
        if nextitem is None or nextitem.path != item.path:
            self.files[item.nodeid.partition("::")[0]] += self._lap()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Count for a fixture that lasts longer than a test, without those that it asks for."""
        if fixturedef.scope == "function":
            return (yield)
        before, counted = spent_seconds(), self._counted
        try:
            return (yield)
        finally:
            own = spent_seconds() - before - (self._counted - counted)
            self.fixtures[f"{fixturedef.argname} of {fixturedef.func.__module__}"] += own
            self._counted += own

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the seconds of a worker to the process that shows them."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["processor_times"] = (dict(self.files), dict(self.fixtures))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the seconds of a worker."""
        files, fixtures = getattr(node, "workeroutput", {}).get("processor_times", ({}, {}))
        for ours, theirs in ((self.files, files), (self.fixtures, fixtures)):
            for name, seconds in theirs.items():
                ours[name] += seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show what takes longest."""
        for called, seconds in (("files", self.files), ("fixtures", self.fixtures)):
            total = sum(seconds.values())
            if total < LEAST_SHOWN:
                continue
            terminalreporter.section(f"processor time: {total:.0f} s in {len(seconds)} {called}")
            for name in sorted(seconds, key=seconds.__getitem__, reverse=True)[:SHOWN]:
                terminalreporter.write_line(f"{seconds[name]:8.1f} s  {name}")

    def _lap(self) -> float:
        """Return the seconds since the last call, without those of fixtures."""
        now = spent_seconds()
        own = now - self._since - self._counted
        self._since, self._counted = now, 0.0
        return own


def spent_seconds() -> float:
    """Return the seconds that this process and all below it have taken so far."""
    return sum(os.times()[:4]) + _spent_below(os.getpid())


def _spent_below(process: int) -> float:
    return sum(processor_seconds(child) + _spent_below(child) for child in children(process))
