"""A screening that was made elsewhere: what all arms answered to every seed of a pair.

A search of some seeds (`--seed-ids`) takes from it what its chains read of the other seeds, so that
it finds what a search of all finds from them. A screening is a run: that of `--screen-only`, or any
whose seeds were all evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgeflare.core.query import Outcome
from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.pages.facts import count_of
from edgeflare.record.request import option_names
from edgeflare.run.answer_rows import from_rows
from edgeflare.run.journal_rows import SCREENING_KEY, AnswerRow, screening_sha256
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import OtherHostError, RunHeader, differences
from edgeflare.run.run_journal import RunJournal
from edgeflare.strategies.strategy_registry import find_strategy

_DECIDES_SCREENING = frozenset({"--ensemble", "--find", "--first", "--limit"})
"""The options by which what all arms answer to a seed may differ."""


@dataclass(frozen=True, slots=True)
class GivenScreening:
    """A screening of all seeds.

    Attributes:
        header: header of its run.
        sha256: digest of its answers.
        rows: what was answered to each seed, by id.
        outcomes: the same, read.

    """

    header: RunHeader
    sha256: str
    rows: Mapping[int, AnswerRow]
    outcomes: Mapping[int, Outcome]

    @classmethod
    def load(
        cls, path: Path, header: RunHeader, seeds: Seeds, *, allow_other_host: bool = False
    ) -> GivenScreening:
        """Load the screening of a run directory.

        Args:
            path: path of the run directory.
            header: header of the run that takes its answers.
            seeds: all seeds that the search takes of the pair.
            allow_other_host: whether another host may have made it, which the run then says.

        Raises:
            OtherHostError: another host made it, and that is not allowed.
            UserError: there is no run, it is damaged, it is of another pair, device or host, or its
                seeds were not all evaluated.

        """
        directory = RunDirectory(path)
        with RunJournal.read(directory.journal) as journal:
            theirs = RunHeader.from_json(journal.about())
            _require_alike(theirs, header, path, allow_other_host=allow_other_host)
            rows = {seed_id: found[0] for seed_id, found in journal.answers("seed").items()}
            outcomes = [query.outcome for query in from_rows(header.reading, list(rows.values()))]
        missing = set(seeds.seed_ids) - rows.keys()
        if missing:
            raise UserError(
                f"--screening {path} has answers to {len(seeds) - len(missing)} of"
                f" {count_of(len(seeds), 'seed')}: finish it first with the command that began it"
                " and --resume"
            )
        outcomes_by_id = dict(zip(rows, outcomes, strict=True))
        return cls(theirs, screening_sha256(rows), rows, outcomes_by_id)


def require_screening(plan: Plan, given: Path | None, *, screen_only: bool) -> None:
    """Refuse a search of some seeds that reads how the others were answered, and is not told.

    Args:
        plan: plan of the search.
        given: the run directory of a screening; None for none.
        screen_only: whether nothing is searched.

    Raises:
        UserError: one is needed, or one is given to a search of all seeds.

    """
    if given is not None and plan.seed_ids is None:
        raise UserError(
            "--screening is for a search of some seeds: add --seed-ids, or leave it out, since a"
            " search of all seeds evaluates them itself"
        )
    reads = find_strategy(plan.strategy).strategy.reads_other_seeds
    needed = plan.seed_ids is not None and plan.goal.find in reads
    if given is None and needed and not screen_only:
        raise UserError(
            f"--seed-ids: the strategy {plan.strategy} reads how the other seeds were answered;"
            " evaluate all once with the same command and --screen-only --out SCREENING in place of"
            " --seed-ids, and add --screening SCREENING here"
        )


def note_screening(journal: RunJournal, given: GivenScreening | None, *, resumed: bool) -> None:
    """Note in the journal of a run which screening it takes answers from.

    Raises:
        UserError: the run is resumed, and was begun with another.

    """
    now = None if given is None else given.sha256
    if not resumed:
        journal.note(SCREENING_KEY, now)
        return
    begun = journal.about().get(SCREENING_KEY)
    if begun != now:
        how = "without --screening" if begun is None else "with --screening"
        how += "" if None in (begun, now) else ", and of other answers"
        raise UserError(
            f"{journal.path.parent} was begun {how}: repeat the command that began it, with"
            " --resume"
        )


def require_unsearched(path: Path) -> None:
    """Refuse to only evaluate the seeds of a run that has searched from them already."""
    directory = RunDirectory(path)
    with RunJournal.read(directory.journal) as journal:
        if journal.chains():
            raise UserError(
                f"{path} has searched from its seeds already: leave out --screen-only to go on,"
                " and give the run to --screening as it is"
            )


def _require_alike(
    theirs: RunHeader, mine: RunHeader, path: Path, *, allow_other_host: bool
) -> None:
    if theirs.version != mine.version:
        raise UserError(
            f"--screening {path} was made by edgeflare {theirs.version}, and this is"
            f" {mine.version}: make it anew with --screen-only"
        )
    ignored = option_names(Plan) - _DECIDES_SCREENING
    for found in differences(theirs, mine, ignored):
        there, here = found.in_words()
        line = (
            f"--screening {path} is of another {found.of} than this search, with {found.name}"
            f" {there} there and {here} here: make it anew with --screen-only"
        )
        if found.of != "host":
            raise UserError(line)
        if not allow_other_host:
            raise OtherHostError(line)
