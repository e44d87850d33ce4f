"""Attempts at units of the example, made in this process's folder of fleets without a cluster."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from edgeflare.fleet.plan.unit_command import DEVICE, RESUME, RUN
from edgeflare.fleet.work.unit_attempt import (
    AttemptOrder,
    AttemptReport,
    AttemptResult,
    run_attempt,
)

ROOT = Path(__file__).parents[2]
COMMAND = (
    *(
        "search",
        "--device",
        DEVICE,
        "--out",
        RUN,
        RESUME,
        "examples/fashion_lenet4",
        "--first",
        "6",
        "--max-queries",
        "60",
    ),
    *("--shrink", "10", "--fail-on", "none", "--quiet"),
)


def attempt_order(number: int = 1, command: tuple[str, ...] = COMMAND) -> AttemptOrder:
    """Return the order of an attempt that reports at each look, and backs up at each as well."""
    return AttemptOrder(
        campaign="tested",
        unit="unit-0000",
        number=number,
        command=command,
        folder=str(ROOT),
        device="emulated-builtin",
        backup_seconds=0.0,
    )


@dataclass
class HeardReports:
    """Takes reports, and has an attempt stop once a function of the last one says so.

    Attributes:
        stop_at: searches that have ended, at which the attempt is stopped; None for never.
        heard: what was reported.
        begun: set at the first report.

    """

    stop_at: int | None = None
    heard: list[AttemptReport] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)

    def __call__(self, report: AttemptReport) -> bool:
        self.heard.append(report)
        self.begun.set()
        return self.stop_at is None or report.ended < self.stop_at


def attempted(
    order: AttemptOrder, backup: bytes | None = None, stop_at: int | None = None
) -> tuple[AttemptResult, list[AttemptReport]]:
    """Make an attempt; return what came of it, and what it reported."""
    reports = HeardReports(stop_at)
    return run_attempt(order, {}, backup, reports), reports.heard
