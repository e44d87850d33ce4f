"""The repaired model searched as the run was: the paper's Table 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgeflare.campaign.assembly import assemble, first_seeds
from edgeflare.campaign.campaign import Interrupt
from edgeflare.campaign.run import begin_run
from edgeflare.campaign.setting import CHAINS, Observer
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.replay.past_run import PastRun
from edgeflare.report.document import Document
from edgeflare.report.documented import run_documented

FOLDER = "again"

FIGURES = (
    "seeds", "deviating_seeds", "findings", "success_rate", "mean_queries", "median_queries",
    "queries",
)  # fmt: skip


def require_same_seeds(past: PastRun, pair: Pair) -> Pair:
    """Return the pair with all seeds that the run had.

    Raises:
        UserError: they are gone or changed, or the run is none that can be searched again.

    """
    said = past.about.pair
    if "replay" in past.document:
        raise UserError(
            f"{past.directory.path} is a replay, which searched nothing: repair the run that it"
            " replays, or leave --search-again away"
        )
    whole = replace(pair, seeds=Path(said["seeds"]), outputs=said["outputs"])
    if whole.fingerprint() != said["fingerprint"]:
        raise UserError(
            f"{whole.seeds} does not hold the seeds of {past.directory.path} any more: put that"
            " file back, or leave --search-again away"
        )
    return whole


def search_again(
    past: PastRun,
    pair: Pair,
    profiles: Sequence[Profile],
    out: Path,
    watch: Callable[[], AbstractContextManager[Observer]],
    interrupt: Interrupt,
) -> Document:
    """Search a repaired model as the run was: its strategy, generator, budget, seeds and devices.

    Args:
        past: the run.
        pair: with its seeds, and the repaired model as the compressed one.
        profiles: its devices.
        out: the new run directory.
        watch: shows progress.
        interrupt: the user's wish to stop.

    Raises:
        InfrastructureError: a device was lost for good.

    """
    plan = past.about.plan
    with ExitStack() as stack:
        assembly = assemble(
            pair,
            first_seeds(pair, plan.limit),
            plan.goal.find,
            profiles,
            stack,
            plan.ensemble,
            plan.elsewhere,
        )
        about = assembly.about(plan)
        directory, journal = begin_run(out, about, len(assembly.seeds), overwrite=False)
        stack.callback(journal.close)
        with watch() as observer:
            return run_documented(assembly, plan, directory, journal, observer, interrupt, CHAINS)


def compared(before: Document, after: Document) -> dict[str, Any]:
    """Return what of two runs is set side by side."""
    return {
        "stopped_by": after["stopped_by"],
        "strategy": after["strategy"],
        "before": {key: before["totals"][key] for key in FIGURES},
        "after": {key: after["totals"][key] for key in FIGURES},
    }
