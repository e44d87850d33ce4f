"""How a repair says how far it is."""

from __future__ import annotations

from collections.abc import Callable

ReportProgress = Callable[[str, int, int], None]
"""Is called with the name of a step, how much of it is done, and how much there is."""

StepProgress = Callable[[int, int], None]
"""The same within one step: how much of it is done, and how much there is."""
