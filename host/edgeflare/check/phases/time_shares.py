"""Shares of the time to measure in, after which the phases of a check have to end."""

from __future__ import annotations

from typing import Final

ANSWERS_UNTIL: Final = 0.5
"""Share of the time after which no further input is asked."""

FIELD_UNTIL: Final = 0.7
"""Share of the time after which no further condition is tried."""

LAYERS_UNTIL: Final = 0.9
"""Share of the time after which the layers are looked into on no further input."""
