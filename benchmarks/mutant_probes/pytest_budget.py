"""A plugin of pytest that ends a session once its tests have taken the processor time it is given.

BUDGET_OF_MUTANT has the processor seconds, of all processes together and from the first test on, so
that what else the machine does decides nothing. A session that ends so has passed, unless a test
has failed.
"""

from __future__ import annotations

import os

import psutil
import pytest

from process_tree import look_at

_BUDGET = float(os.environ["BUDGET_OF_MUTANT"])
_first = psutil.Process()


class Budget:
    """What is left of a session's processor time."""

    def __init__(self) -> None:
        self._ends = 0.0
        self._failed = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Have the tests in the order in which they are named, whatever else orders them."""
        named = {name: place for place, name in enumerate(config.args)}
        items.sort(key=lambda item: named.get(item.nodeid, len(named)))

    def pytest_collection_finish(self) -> None:
        """Count from here on."""
        self._ends = look_at(_first)[0] + _BUDGET

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, after which pytest ends the session itself."""
        self._failed = self._failed or report.failed

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """End the session after a test, as if it had passed, where the time is spent."""
        if not self._failed and look_at(_first)[0] > self._ends:
            pytest.exit(f"{_BUDGET:.0f} processor seconds are spent", returncode=0)


def pytest_configure(config: pytest.Config) -> None:
    """Watch the session."""
    config.pluginmanager.register(Budget())
