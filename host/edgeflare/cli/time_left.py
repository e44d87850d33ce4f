"""How long a phase will still take, as far as that can be told."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from edgeflare.campaign.observer import Progress, RefinementProgress

FIRST_SECONDS: Final = 3.0
"""Seconds before which start-up decides how fast it seems to go."""

WINDOW_SECONDS: Final = 30.0
"""Seconds over which the speed of a search is averaged: it falls when few chains are left."""

FIRST_FINDINGS: Final = 10
"""A rate estimated from fewer is off by a third or more (1/√n), so only the bound is said."""

FIRST_SHARE: Final = 0.1
"""Share of what is counted that is done before an estimate."""

FIRST_COUNT: Final = 100
"""Count that is more than enough for an estimate, however much there is in all."""

UNKNOWN: Final = "time left unknown"


class TimeLeft:
    """The time left of one phase, told from its reports."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin; `clock` gives seconds."""
        self._clock = clock
        self._reports: deque[tuple[float, int]] = deque()

    def counted(self, done: int, total: int) -> str:
        """Tell it of a phase whose parts take about as long each.

        It says nothing when the phase has begun, and where all is done.
        """
        now = self._clock()
        begins = not self._reports
        if begins:
            self._reports.append((now, done))
        begun, before = self._reports[0]
        if begins or done >= total:
            return ""
        enough = min(FIRST_COUNT, max(1, FIRST_SHARE * (total - before)))
        if now - begun < FIRST_SECONDS or done - before < enough:
            return UNKNOWN
        return f"about {in_words((now - begun) / (done - before) * (total - done))} left"

    def refined(self, progress: RefinementProgress) -> str:
        """Tell it of a refinement, whose findings spend some of the same bound of queries each.

        Where too few have ended for an estimate, it is what the bound allows at most.
        """
        reports, now = self._reports, self._clock()
        reports.append((now, progress.ended_queries + progress.open_queries))
        while len(reports) > 2 and reports[1][0] <= now - WINDOW_SECONDS:
            reports.popleft()
        left = progress.findings - progress.ended
        if not left:
            return ""
        seconds, queries = now - reports[0][0], reports[-1][1] - reports[0][1]
        if seconds < FIRST_SECONDS or queries <= 0:
            return UNKNOWN
        pace = seconds / queries
        if progress.ended < FIRST_FINDINGS:
            most = left * progress.most_queries - progress.open_queries
            return f"at most {in_words(most * pace)} left"
        mean = progress.ended_queries / progress.ended
        return f"about {in_words(max(0.0, left * mean - progress.open_queries) * pace)} left"

    def searched(self, progress: Progress) -> str:
        """Tell it of a search, whose chains end when they find something or their budget ends.

        Where too little was found for an estimate, it is what the budget allows at most.
        """
        reports = self._reports
        reports.append((progress.seconds, progress.queries))
        while len(reports) > 2 and reports[1][0] <= progress.seconds - WINDOW_SECONDS:
            reports.popleft()
        if progress.ended >= progress.seeds - progress.deviating_seeds:
            return ""
        seconds = progress.seconds - reports[0][0]
        queries = progress.queries - reports[0][1]
        if seconds < FIRST_SECONDS or queries <= 0:
            return UNKNOWN
        pace, deadline = seconds / queries, progress.seconds_left
        if progress.findings < FIRST_FINDINGS:
            return f"at most {in_words(min(progress.most_queries_left * pace, deadline))} left"
        return f"about {in_words(min(expected_queries(progress) * pace, deadline))} left"


def expected_queries(progress: Progress) -> float:
    """Return how many queries the open chains will still spend.

    Every query is taken to find something with the same probability: the findings so far by the
    queries so far, which counts chains that are open or ended without a finding for what they
    spent (the maximum-likelihood rate of censored exponential times). Each open chain is taken to
    have an equal share of what is left of the budget.
    """
    chains = progress.seeds - progress.deviating_seeds - progress.ended
    rate = progress.findings / progress.queries
    share = progress.most_queries_left / max(1, chains)
    return chains * -math.expm1(-rate * share) / rate if rate else progress.most_queries_left


def in_words(seconds: float) -> str:
    """Return a time, rounded up in coarse steps: no figure that moves with each report."""
    if seconds < 90:
        return f"{max(1, math.ceil(seconds / 10)) * 10} s"
    if seconds < 5400:
        minutes = math.ceil(seconds / 60)
        return f"{minutes if minutes < 20 else math.ceil(minutes / 5) * 5} min"
    return f"{math.ceil(seconds / 360) / 10:,.1f} h"
