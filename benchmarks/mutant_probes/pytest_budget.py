"""A plugin of pytest that ends a session once its tests have taken the processor time it is given.

BUDGET_OF_MUTANT has the processor seconds, of all processes together, so that what else the machine
does decides nothing.
"""

from __future__ import annotations

import os

import psutil
import pytest

from process_tree import look_at

_BUDGET = float(os.environ["BUDGET_OF_MUTANT"])
_first = psutil.Process()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """End the session after a test, as if it had passed, where the time is spent."""
    spent, _ = look_at(_first)
    if spent > _BUDGET:
        pytest.exit(f"{spent:.0f} processor seconds are spent", returncode=0)
