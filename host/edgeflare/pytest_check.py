"""A check as a test, whose failure says why a model may not ship.

    def test_the_release_may_ship(edgeflare):
        assert_may_ship(edgeflare.check("models/my_pair", inputs="test.npz"))

pytest loads this file in every session, so it imports the rest where that is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from edgeflare.api.check import CheckResult


def assert_may_ship(result: CheckResult, *, undecided: bool = False) -> None:
    """Fail unless a model may ship; the message says why not, and what to do.

    Args:
        result: result of a check.
        undecided: whether a check that decides nothing passes too.

    """
    __tracebackhide__ = True
    from edgeflare.untrusted_text import for_terminal  # noqa: PLC0415

    said = result.document
    if result.may_ship or (undecided and said.verdict == "undecided"):
        return
    failed = [gate for gate in said.gates if gate.state == "fail"]
    lines = [
        f"{said.verdict}: {said.sentence}",
        *(f"gate {gate.name}: {gate.words}" for gate in failed),
        f"next: {said.next}",
        f"the check: {result.path}",
    ]
    pytest.fail(for_terminal("\n".join(lines)), pytrace=False)
