"""What a check says of the layers on a device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from edgeflare.diagnose.layer_difference import WrongTogether
from edgeflare.release.layer_faults import together_on_device

FUSED = (WrongTogether("SPLIT then ADD", ("ADD reads two results of one operator",)),)
PHONE = SimpleNamespace(name="phone")


@pytest.mark.parametrize(
    ("device", "together", "said"),
    [
        (PHONE, FUSED, {"phone": tuple(map(str, FUSED))}),
        (PHONE, (), {}),
        (None, (), {}),
    ],
)
def test_operators_that_are_wrong_together_are_those_of_the_device(
    device: Any, together: Any, said: dict[str, tuple[str, ...]]
) -> None:
    table: Any = SimpleNamespace(device=device, together=together)
    assert together_on_device(table) == said
