"""The search of the repaired model with the settings of the run (the paper's Table 8)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec

from edgeflare.campaign.campaign_record import describe_run, search_into
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.pair_panel import open_pair
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInterface
from edgeflare.repair.repair_document import SearchComparison, SearchFigures
from edgeflare.replay.past_run import PastRun
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare_protos.kernel_sets import TFLiteKernels

FOLDER = "again"


def require_same_seeds(past: PastRun, pair: Pair) -> Pair:
    """Return the pair with all seeds that the run had.

    Raises:
        UserError: the seeds are gone or changed, or the run is a replay.

    """
    said = past.header.pair
    if past.document.replay is not None:
        raise UserError(
            f"{past.directory.path} is a replay, which searched nothing: repair the run that it"
            " replays"
        )
    seeds = past.searched_seeds(pair)
    if seeds is None:
        raise UserError(
            f"{said.seeds} does not hold the seeds of {past.directory.path} any more, by which a"
            " repair is judged: put that file back"
        )
    return replace(pair, seeds=seeds, interface=PairInterface.of(said))


def require_same_ensemble(
    past: PastRun, named: tuple[tuple[TFLiteKernels, ...], tuple[str, ...]] | None
) -> None:
    """Refuse to start the Pythons of an ensemble because a run names them.

    Args:
        past: the run.
        named: the ensemble that the user names: kernel sets of this Python, and members that are
            run by other Pythons.

    Raises:
        UserError: a member of the run's ensemble is run by another Python and the user does not
            name it, or the user names another ensemble than the run's.

    """
    plan = past.header.plan
    own = (plan.ensemble, plan.elsewhere)
    if named == own or (named is None and not plan.elsewhere):
        return
    text = shlex.quote(",".join((*plan.ensemble, *plan.elsewhere)))
    if named is not None:
        raise UserError(f"--search-again compares with RUN, whose ensemble is --ensemble {text}")
    raise UserError(
        f"{past.directory.path} was searched with {', '.join(plan.elsewhere)} in its ensemble, and"
        " no program is started because a run names it: if you trust it, name it again with "
        f"--ensemble {text}"
    )


def search_again(
    past: PastRun,
    pair: Pair,
    profiles: Sequence[Profile],
    out: Path,
    watch: Callable[[], AbstractContextManager[Observer]],
    interrupt: Interrupt,
) -> RunDocument:
    """Search a repaired model with the run's strategy, run seed, budget, seeds and devices.

    A search that was stopped before goes on.

    Args:
        past: the run.
        pair: pair with its seeds, and the repaired model as the compressed one.
        profiles: profiles of its devices.
        out: the new run directory.
        watch: shows progress.
        interrupt: whether the user wants to stop.

    """
    plan = past.header.plan
    with ExitStack() as stack:
        opened = open_pair(pair, plan, profiles, stack)
        observer = stack.enter_context(watch())
        return search_into(
            out,
            opened,
            describe_run(opened, plan),
            observer=observer,
            interrupt=interrupt,
            resume=RunDirectory(out).journal.exists(),
        )


def search_comparison(before: RunDocument, after: RunDocument) -> SearchComparison:
    """Return the figures of two runs side by side."""
    first, second = (
        msgspec.convert(document.totals, SearchFigures, from_attributes=True)
        for document in (before, after)
    )
    return SearchComparison(
        stopped_by=after.stopped_by, strategy=after.strategy, before=first, after=second
    )
