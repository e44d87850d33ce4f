"""A search from Python: `edgeflare.search`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from edgeflare.api.call_arguments import (
    device_names,
    errors_of_disks,
    if_given,
    name_of,
    names_of,
    naming_arguments,
    path_of,
    real_number,
    require_one_of,
    require_one_way,
    shown_progress,
    whole_number,
)
from edgeflare.api.result import Result
from edgeflare.campaign.campaign_record import describe_run, search_into
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.pair_panel import open_pair
from edgeflare.campaign.search_checks import require_searchable
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.pages.page import Page
from edgeflare.record.folder import new_folder
from edgeflare.report.entry_words import worst_first
from edgeflare.report.run_csv import run_csv
from edgeflare.report.run_page import run_page
from edgeflare.run.plan import SHRINK, Plan, default_strengthen
from edgeflare.run.run_document import Finding, RunDocument
from edgeflare.trust import granted

TOTAL_QUERIES = 10_000
"""Queries of a search: about ten seconds for a model of a millisecond, and as long again for each
sixteen findings that are shrunk."""


@dataclass(frozen=True, repr=False)
class SearchResult(Result[RunDocument]):
    """A search that has ended; its rows are what was found.

    Attributes:
        document: what run.json holds.
        path: the run directory.

    """

    @property
    def deviations(self) -> list[Finding]:
        """Seeds that deviate themselves, then findings; in each part the worst come first."""
        document = self.document
        return [*worst_first(document.deviating_seeds), *worst_first(document.findings)]

    def page(self) -> Page:
        """Return what `edgeflare search` says."""
        return run_page(self.document)

    def csv(self) -> str:
        """Return what was found as comma-separated values with a header (RFC 4180)."""
        return run_csv(self.document)


@naming_arguments
def search(  # noqa: PLR0913 - the options of the command
    pair: str | PathLike[str],
    *,
    seeds: str | PathLike[str] | None = None,
    device: str | Sequence[str] = "emulated-builtin",
    total_queries: int = TOTAL_QUERIES,
    time_limit: float | None = None,
    limit: int | None = None,
    first: int | None = None,
    find: Literal["any", "compression", "kernel"] = "any",
    strategy: str | None = None,
    min_strength: float = 0.0,
    within: float | Literal["default"] | None = "default",
    shrink: int = SHRINK,
    rng_seed: int = 0,
    operators: str | Sequence[str] = ("built-in",),
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    trust: bool = False,
    trust_profiles: bool = False,
    progress: bool = True,
) -> SearchResult:
    """Find inputs on which a compressed model decides differently; see `edgeflare search`.

    Args:
        pair: a folder with a `pair.toml`.
        seeds: an `.npz` or a folder; the pair's seeds for None.
        device: name of a device, or names of several.
        total_queries: queries for all seeds together.
        time_limit: seconds that the search may take; None for no bound.
        limit: take so many seeds only, of each label its share.
        first: take the first so many seeds only, whatever their labels.
        find: deviations that count.
        strategy: name of the search strategy; that of the pair's task for None.
        min_strength: deviations weaker than this do not count, once they are strengthened.
        within: deviations farther from their seed than this PSNR in dB (of sounds SNR) do not
            count, once they are shrunk; None for any distance. By default 30 for images; each
            domain has its own.
        shrink: queries that bringing one finding nearer to its seed may take, beside those of the
            search; 0 for none.
        rng_seed: the run seed: the same one finds the same.
        operators: names of the mutation operators to draw from, as for `--operators`.
        out: the run directory, absent or empty; a new one in `runs/` for None.
        overwrite: replace the run in `out`.
        resume: go on with the run in `out`.
        trust: trust a Python function that the pair names as its original, and profiles in
            `./device_profiles`.
        trust_profiles: trust the profiles alone.
        progress: show how far it is, on standard error.

    Raises:
        UserError: an argument, the pair or a device's name is not what it should be, or needs the
            user's trust and does not have it.
        InfrastructureError: a device, a process or a disk failed; the run directory is valid, and
            `resume` goes on.

    """
    __tracebackhide__ = True
    min_strength = real_number("min_strength", min_strength, 0.0, 1.0)
    require_one_of("find", find, [target.value for target in Find])
    require_one_way(out, overwrite=overwrite, resume=resume)
    given = Settings(seeds=None if seeds is None else str(path_of("seeds", seeds)))
    loaded = load_pair(path_of("pair", pair), given, granted(trust), seeds_option="")
    profiles = find_profiles(device_names(device), granted(trust or trust_profiles))
    plan = Plan(
        strategy=if_given(name_of, "strategy", strategy) or loaded.interface.opened_task.strategy,
        goal=Goal(Find(find)),
        devices=tuple(profile.name for profile in profiles),
        rng_seed=whole_number("rng_seed", rng_seed, 0),
        limit=if_given(whole_number, "limit", limit, 1),
        first=if_given(whole_number, "first", first, 1),
        total_queries=if_given(whole_number, "total_queries", total_queries, 1),
        time_limit_seconds=if_given(real_number, "time_limit", time_limit, 1e-3),
        strengthen=default_strengthen(min_strength),
        shrink=whole_number("shrink", shrink, 0),
        min_strength=min_strength,
        within_db=within if within == "default" else if_given(real_number, "within", within, 0.0),
        operators=names_of("operators", operators),
    )
    path = if_given(path_of, "out", out) or new_folder(loaded.folder_name)
    with errors_of_disks(), shown_progress(progress) as display:
        document = _run(loaded, profiles, plan, path, display, overwrite=overwrite, resume=resume)
    return SearchResult(document, path)


def _run(
    pair: Pair,
    profiles: Sequence[Profile],
    plan: Plan,
    path: Path,
    observer: Observer,
    *,
    overwrite: bool,
    resume: bool,
) -> RunDocument:
    with ExitStack() as stack:
        opened = open_pair(pair, plan, profiles, stack)
        count = len(opened.seeds)
        if plan.total_queries is not None and plan.total_queries < count:
            raise UserError(
                f"total_queries={plan.total_queries} is less than one for each of {count} seeds:"
                " raise it, or take fewer seeds with limit"
            )
        require_searchable(opened, plan)
        return search_into(
            path,
            opened,
            describe_run(opened, plan),
            observer=observer,
            interrupt=Interrupt(),
            resume=resume,
            overwrite=overwrite,
        )
