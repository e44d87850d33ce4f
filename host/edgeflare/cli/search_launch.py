"""A search as it was asked for on the command line, run on one device or on several."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from rich.text import Text

from edgeflare.campaign.campaign import run_screening
from edgeflare.campaign.campaign_record import describe_run, run_recorded_campaign
from edgeflare.campaign.coverage_phase import search_and_cover
from edgeflare.campaign.input_evaluation import HeldOut, note_held_out
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.campaign.screening_answers import GivenScreening, note_screening
from edgeflare.campaign.search_checks import require_searchable
from edgeflare.cli.console import Console
from edgeflare.cli.interruptible import INTERRUPTED, failures_reported, interruptible
from edgeflare.cli.run_options import MovableRunFolder, naming_other_host
from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.core.query import Arm
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.pages.facts import count_of
from edgeflare.progress import observe
from edgeflare.run.begin_or_resume import note_other_host
from edgeflare.run.gate import deviation_rate, exceeds, require_truth, searched_nothing
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDocument
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.untrusted_text import printable


@dataclass(frozen=True, slots=True)
class RequestedSearch:
    """A search that was asked for.

    Attributes:
        pair: what is searched.
        plan: how, but for the devices.
        test: inputs that are only evaluated; None for none.
        screening: the run directory that a search of some seeds takes its screening from; None for
            none.
        chains: the most chains that are open at once for each device.
        fail_on: deviations that make the exit code 1.
        folder: whether the run begins anew, replaces one or goes on.
        screen_only: whether nothing is searched.

    """

    pair: Pair
    plan: Plan
    test: Path | None
    screening: Path | None
    chains: int
    fail_on: str
    folder: MovableRunFolder
    screen_only: bool = False

    def on(self, profiles: Sequence[Profile]) -> RequestedSearch:
        """Return the search on these devices."""
        devices = tuple(profile.name for profile in profiles)
        return replace(self, plan=replace(self.plan, devices=devices))


def run_search(
    asked: RequestedSearch, profiles: Sequence[Profile], path: Path, resumed_at: Path
) -> RunDocument:
    """Run a search, its progress shown, and return its document.

    Args:
        asked: the search.
        profiles: the devices.
        path: the run directory.
        resumed_at: what the user names to go on with it.

    """
    console = Console(stderr=True)
    with ExitStack() as stack:
        opened = _opened(asked, profiles, stack, console)
        directory, journal = asked.folder.begin_or_resume(
            path, opened.header, opened.seeds, opened.require_noted
        )
        stack.callback(journal.close)
        if not asked.folder.resume:
            opened.note(journal)
        if (screening := opened.pair.screening) is not None:
            note_other_host(journal, screening.header, opened.header)
        with (
            failures_reported(directory, resumed_at),
            observe(console) as observer,
            interruptible() as interrupt,
        ):
            return run_recorded_campaign(
                opened.pair,
                opened.header.plan,
                journal,
                observer=observer,
                interrupt=interrupt,
                chains=asked.chains,
                held_out=opened.held_out,
                phases=run_screening if asked.screen_only else search_and_cover(opened.pair),
            )


def try_search(asked: RequestedSearch, profiles: Sequence[Profile], path: Path) -> None:
    """Open what a search would open, and print what it would do; nothing is written.

    Args:
        asked: the search.
        profiles: the devices.
        path: the run directory.

    """
    from edgeflare.campaign.dry_run import evaluate_first_seeds  # noqa: PLC0415 - for this alone
    from edgeflare.report.dry_run_lines import print_dry_run  # noqa: PLC0415 - likewise

    with ExitStack() as stack:
        opened = _opened(asked, profiles, stack, Console(stderr=True))
        asked.folder.require_resumable(path, opened.header, opened.require_noted)
        pair = opened.pair
        doing = asked.folder.planned(path)
        look, notes = evaluate_first_seeds(pair), (*pair.pair.notes, *pair.seeds.notes)
        print_dry_run(Console(), opened.header, look, opened.seeds, doing, notes)


@dataclass(frozen=True, slots=True)
class _OpenedSearch:
    """A search whose models and devices are open.

    Attributes:
        pair: opened.
        header: what run it is.
        held_out: inputs that are only evaluated; None for none.

    """

    pair: OpenedPair
    header: RunHeader
    held_out: HeldOut | None

    @property
    def seeds(self) -> int:
        """How many seeds are searched."""
        return len(self.header.plan.seed_ids or self.pair.seeds)

    def note(self, journal: RunJournal) -> None:
        """Note in the journal of a run that begins what it reads beside the pair."""
        note_held_out(journal, self.held_out, resumed=False)
        note_screening(journal, self.pair.screening, resumed=False)

    def require_noted(self, journal: RunJournal) -> None:
        """Refuse to go on with a run that reads something else beside the pair."""
        note_held_out(journal, self.held_out, resumed=True)
        note_screening(journal, self.pair.screening, resumed=True)


def _opened(
    asked: RequestedSearch, profiles: Sequence[Profile], stack: ExitStack, console: Console
) -> _OpenedSearch:
    asked = asked.on(profiles)
    # Seen on a terminal only: elsewhere, an error is the one line that is printed. For words with
    # markup a table of emojis would be imported.
    named, devices = printable(asked.pair.name), ", ".join(asked.plan.devices)
    with console.status(Text(f"opening {named} on {devices}")):
        pair = open_pair(asked.pair, asked.plan, profiles, stack)
    require_searchable(pair, asked.plan)
    header = describe_run(pair, asked.plan)
    require_truth(asked.fail_on, header.truths)
    held_out = (
        None
        if asked.test is None
        else HeldOut.load(asked.test, pair.inputs, header.arms[Arm.TWIN], pair.pair.classes)
    )
    if asked.screening is not None:
        with naming_other_host():
            screening = GivenScreening.load(
                asked.screening,
                header,
                pair.seeds,
                allow_other_host=asked.folder.allow_other_host,
            )
        pair = replace(pair, screening=screening)
    return _OpenedSearch(pair, header, held_out)


def search_exit_code(document: RunDocument, fail_on: str, allow: float, beginning: str = "") -> int:
    """Return the exit code of a run that has ended, and say why where something deviates.

    Args:
        document: document of the run.
        fail_on: deviations that count.
        allow: share of the seeds that may have one.
        beginning: what the line begins with, where it is one of several runs.

    Raises:
        UserError: the search ended before anything was searched, so that nothing can pass.

    """
    if document.stopped_by in INTERRUPTED_BY:
        return INTERRUPTED
    if exceeds(document, fail_on, allow):
        rate = deviation_rate(document, fail_on)
        Console().print(
            f"{beginning}exit code 1: {rate:.1%} of the seeds deviate or lead to it, "
            f"{allow:.1%} allowed (--allow, --fail-on, --within, --min-strength)"
        )
        return 1
    ended_early = document.stopped_by == "time-limit"
    if ended_early and fail_on != "none" and searched_nothing(document):
        raise UserError(
            f"--time-limit {document.plan.time_limit_seconds:g} ended before the search from any of"
            f" {count_of(document.totals.seeds, 'seed')} did, so nothing can pass: give it more"
            " time, or fewer seeds with --limit"
        )
    return 0
