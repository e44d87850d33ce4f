"""The grid of a bench: strategies × pairs × run seeds, and its campaigns, each with a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from edgeflare.campaign.campaign_record import describe_run, search_into
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.campaign.search_checks import require_searchable
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import UserError, suggestion
from edgeflare.models.pair import Pair
from edgeflare.record.folder import FolderKind, is_free
from edgeflare.record.folder_contents import FOLDER, list_as
from edgeflare.record.json_types import plain_json
from edgeflare.run.begin_or_resume import require_resumable
from edgeflare.run.load_document import load_document, require_own_seeds
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import DOCUMENT, RunDirectory, files_of, what_is_in
from edgeflare.run.run_document import RunDocument
from edgeflare.run.run_header import RunHeader, require_same
from edgeflare.run.run_journal import RunJournal
from edgeflare.strategies.operator_pool import pool_names
from edgeflare.strategies.strategy_parameters import Value
from edgeflare.strategies.strategy_registry import find_strategy
from edgeflare.trust import KEPT_ONLY, Trust


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One campaign of a bench."""

    pair: Pair
    plan: Plan

    @property
    def run(self) -> Path:
        """The path of its run directory, relative to the bench's folder."""
        return Path(self.pair.folder_name) / f"{self.plan.strategy}-{self.plan.rng_seed}"


@dataclass(frozen=True, slots=True)
class Grid:
    """The settings of a bench, for every pair.

    Attributes:
        strategies: names of the strategies, each once.
        rng_seeds: the run seeds, each once; every strategy is run with each.
        baseline: the strategy that the others are compared with; one of them.
        plan: the settings of each campaign; strategy and run seed are replaced by those above.
        trust: the user's decision on the device's profile.
        parameters: the parameters that are set, by strategy; the plan's for one that is absent.
        only: the run that is made, by its path as `BenchRun` has it; None for all.

    """

    strategies: tuple[str, ...]
    rng_seeds: tuple[int, ...]
    baseline: str
    plan: Plan
    trust: Trust = KEPT_ONLY
    parameters: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    only: Path | None = None

    def __post_init__(self) -> None:
        _check_once("--strategy", self.strategies)
        _check_once("--rng-seeds", self.rng_seeds)
        for name in self.strategies:
            find_strategy(name)
        if self.baseline not in self.strategies:
            raise UserError(
                f"--baseline {self.baseline} is none of the strategies that are run: name one of "
                + ", ".join(self.strategies)
            )

    @property
    def device(self) -> str:
        """The device's name."""
        return self.plan.devices[0]

    def with_pool_of(self, domain: str) -> Grid:
        """Return the grid with the operators that its plan chooses from those of a domain.

        Raises:
            UserError: a name is unknown, or an installed package's operators do not load.

        """
        operators = pool_names(domain, self.plan.operators)
        return replace(self, plan=replace(self.plan, operators=operators))

    def with_only(self, run: str, pairs: Sequence[Pair]) -> Grid:
        """Return the grid with one of its campaigns alone.

        Args:
            run: path of its run directory, as `BenchRun` has it.
            pairs: all that the grid is run on.

        Raises:
            UserError: it has no such campaign.

        """
        known = [cell.run.as_posix() for pair in pairs for cell in self.cells(pair)]
        if run not in known:
            raise UserError(
                f"--only {run}: there is no such run{suggestion(run, known)}: name one of the"
                f" {len(known)}, such as {known[0]}"
            )
        return replace(self, only=Path(run))

    def cells(self, pair: Pair) -> Iterator[BenchRun]:
        """Yield the campaigns on a pair."""
        for strategy in self.strategies:
            plan = replace(
                self.plan,
                strategy=strategy,
                parameters=self.parameters.get(strategy, self.plan.parameters),
            )
            for rng_seed in self.rng_seeds:
                cell = BenchRun(pair, replace(plan, rng_seed=rng_seed))
                if self.only in (None, cell.run):
                    yield cell

    def to_json(self) -> dict[str, Any]:
        """Return the grid as plain JSON values."""
        plan = plain_json(self.plan)
        del plan["strategy"], plan["rng_seed"]
        if self.parameters:
            plan["parameters"] = {name: dict(set_) for name, set_ in self.parameters.items()}
        return {
            "strategies": list(self.strategies),
            "rng_seeds": list(self.rng_seeds),
            "baseline": self.baseline,
            "plan": plan,
        }


def check_pairs(pairs: Sequence[Pair]) -> None:
    """Refuse pairs whose runs would be in one folder, or cannot be compared.

    Raises:
        UserError: two pairs have the same name, or another domain or task.

    """
    _check_once("pairs by the name", [pair.folder_name for pair in pairs])
    first, *others = pairs
    for pair in others:
        for what, own, other in (
            ("domains", first.interface.domain_name, pair.interface.domain_name),
            ("tasks", first.interface.task, pair.interface.task),
        ):
            if own != other:
                raise UserError(
                    f"{first.name} and {pair.name} have different {what}, {own} and {other}, whose"
                    " figures cannot be compared: bench them apart"
                )


def _check_once(what: str, values: Sequence[object]) -> None:
    if not values:
        raise UserError(f"{what}: there is none; name at least one")
    for value, times in Counter(values).items():
        if times > 1:
            raise UserError(f"{what} {value}: named {times} times; name each once")


Watch = Callable[[BenchRun], AbstractContextManager[Observer]]
"""Shows the progress of a campaign while the context lasts."""


def run_grid(
    grid: Grid,
    pairs: Sequence[Pair],
    out: Path,
    *,
    chains: int,
    watch: Watch,
    interrupt: Interrupt,
) -> Iterator[tuple[BenchRun, RunDocument]]:
    """Run the campaigns of a bench one after the other; yield each that reached its end.

    Models and device are opened once for each pair. Campaigns that have ended in the folder, which
    `check_folder` let pass, are not run again, and one that was stopped goes on. Once the user
    wants to stop, no other begins.

    Raises:
        UserError: a pair is not what it should be, or `out` leads out of itself by a link.

    """
    check_pairs(pairs)
    for pair in pairs:
        if interrupt.asked():
            return
        cells = list(grid.cells(pair))
        if not cells:
            continue
        with ExitStack() as stack:
            opened = open_grid_pair(grid, pair, stack)
            for cell in cells:
                require_searchable(opened, cell.plan)
            for cell in cells:
                if interrupt.asked():
                    return
                path = RunDirectory(out).inside(str(cell.run / DOCUMENT)).parent
                list_as(out, cell.run.as_posix(), FOLDER)
                document = _run_cell(cell, opened, path, chains, watch, interrupt)
                if document.stopped_by is None:
                    yield cell, document


def open_grid_pair(grid: Grid, pair: Pair, stack: ExitStack) -> OpenedPair:
    """Open what the campaigns on a pair share: its models and the device; see `open_pair`."""
    return open_pair(pair, grid.plan, [find_profile(grid.device, grid.trust)], stack)


def require_runnable(grid: Grid, pair: Pair, opened: OpenedPair, out: Path) -> None:
    """Refuse what `run_grid` would refuse of the campaigns on a pair, and write nothing.

    Args:
        grid: the bench.
        pair: one of its pairs.
        opened: the same, opened.
        out: folder of the bench, which `check_folder` let pass.

    Raises:
        UserError: one of them cannot be made, or its run in the folder was begun otherwise.

    """
    for cell in grid.cells(pair):
        require_searchable(opened, cell.plan)
        directory = RunDirectory(RunDirectory(out).inside(str(cell.run / DOCUMENT)).parent)
        if directory.journal.exists():
            header = describe_run(opened, cell.plan)
            if _finished(directory, header) is None:
                require_resumable(directory.path, header)


def check_folder(out: Path, *, resume: bool, holds: str = "bench") -> None:
    """Refuse a folder that a bench, or what else consists of its runs, must not write to.

    Raises:
        UserError: it is a file, or holds something and that is not to go on, or is of another
            command.

    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    if resume and (other := what_is_in(out)) not in (None, holds):
        raise UserError(
            f"{out} holds a {other}, and no {holds}: name another folder with --out, and leave out"
            " --resume"
        )
    if not resume and not is_free(out):
        raise UserError(
            f"{out} is not empty: go on with the {holds} in it with --resume, or name another "
            "folder with --out"
        )


@contextmanager
def claimed_folder(out: Path, *, resume: bool, holds: str = "bench") -> Iterator[None]:
    """Make or take the folder of a bench, which no other process works in meanwhile.

    Raises:
        UserError: as of `check_folder`, or another process works there.

    """
    check = partial(check_folder, out, resume=resume, holds=holds)
    with FolderKind(holds, files=files_of(holds)).take(out, check):
        yield


def _run_cell(
    cell: BenchRun, opened: OpenedPair, path: Path, chains: int, watch: Watch, interrupt: Interrupt
) -> RunDocument:
    header = describe_run(opened, cell.plan)
    if (finished := _finished(RunDirectory(path), header)) is not None:
        return finished
    with watch(cell) as observer:
        return search_into(
            path,
            opened,
            header,
            observer=observer,
            interrupt=interrupt,
            resume=RunDirectory(path).journal.exists(),
            chains=chains,
        )


def _finished(directory: RunDirectory, header: RunHeader) -> RunDocument | None:
    """Return the document of a run that reached its end, or None.

    What another device has made counts, if it is alike in all that decides answers: a fleet's
    devices of one class have a name each.
    """
    if not directory.document.exists():
        return None
    document = load_document(directory)
    if document.stopped_by is not None:
        return None
    with closing(RunJournal.open(directory.journal)) as journal:
        begun = RunHeader.from_json(journal.about())
        require_same(begun, header, str(directory.path))
        require_own_seeds(document, begun, directory)
    return document
