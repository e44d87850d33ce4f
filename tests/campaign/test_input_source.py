"""What a campaign is given beside its seeds: a screening from elsewhere, and held-out images."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from documents import run_host, run_pair
from edgeflare.campaign.campaign import run_screening
from edgeflare.campaign.input_evaluation import HeldOut, note_held_out
from edgeflare.campaign.screening_answers import (
    GivenScreening,
    note_screening,
    require_screening,
    require_unsearched,
)
from edgeflare.core.goal import Find, Goal
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.truths import Truths, is_right, truth_distance
from edgeflare.errors import UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair_interface import PairInterface
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDevice, to_json
from edgeflare.run.run_header import OtherHostError, RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import SeedIds
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy
from edgeflare.strategies.strategy_registry import find_strategy, strategies
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.regression import Regression
from laboratory import Laboratory
from merged_parts import (
    PLAN,
    about_of,
    change_journal,
    copied,
    note_about,
    search_part,
    small_laboratory,
)

Refusal = Callable[..., str]
SOME = SeedIds.read("1,3")


@pytest.fixture(scope="module")
def screened(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """A laboratory with a run `screening`, which no test changes."""
    laboratory = small_laboratory(tmp_path_factory.mktemp("screened"))
    document = laboratory.run("screening", phases=run_screening, **PLAN)
    assert document["stopped_by"] == "screening"
    return laboratory


def seeds_of(laboratory: Laboratory) -> Seeds:
    images = laboratory.images
    return Seeds(images, None, tuple(map(str, range(len(images)))))


def header_of(run: Path, **plan: Any) -> RunHeader:
    """Return the header of a search of some seeds that is like a run but for its plan."""
    header = RunHeader.from_json(about_of(run))
    return replace(header, plan=replace(header.plan, **{"seed_ids": SOME, **plan}))


def load(laboratory: Laboratory, run: Path, header: RunHeader | None = None) -> GivenScreening:
    return GivenScreening.load(run, header or header_of(run), seeds_of(laboratory))


def test_a_screening_searches_nothing(screened: Laboratory) -> None:
    with closing(RunJournal.open(screened.folder / "screening" / "run.db")) as journal:
        assert not journal.chains()
        assert len(journal.answers("seed")) == len(screened.images)
        assert set(journal.answers("verify")) == set(journal.triggers())
        assert journal.triggers()
        assert journal.about()["stopped_by"] == "screening"
    given = load(screened, screened.folder / "screening")
    assert list(given.rows) == list(given.outcomes) == list(range(len(screened.images)))


def test_a_search_of_other_ways_or_on_a_device_of_another_name_may_take_it(
    screened: Laboratory,
) -> None:
    run = screened.folder / "screening"
    other = {"strategy": "donor", "rng_seed": 9, "max_queries": 3, "shrink": 0, "strengthen": 0}
    other |= {"devices": ("board",)}
    assert load(screened, run, header_of(run, **other)).sha256


def other_pair(header: RunHeader) -> RunHeader:
    return replace(header, pair=run_pair(name="other", fingerprint="1"))


def other_kernels(header: RunHeader) -> RunHeader:
    (device,) = header.devices
    provenance = replace(device.provenance, kernels="xnnpack")
    return replace(header, devices=(RunDevice(name=device.name, provenance=provenance),))


def other_goal(header: RunHeader) -> RunHeader:
    return replace(header, plan=replace(header.plan, goal=Goal(Find.KERNEL)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_pair, "of another pair than this search, with pair laboratory there and other"),
        (other_kernels, "of another device than this search, with kernels builtin there and"),
        (other_goal, "of another option than this search, with --find any there and kernel here"),
        (
            lambda header: replace(header, version="0.0.1"),
            "was made by edgeflare test, and this is",
        ),
    ],
)
def test_one_of_something_else_is_refused(
    screened: Laboratory, refusal: Refusal, change: Callable[[RunHeader], RunHeader], said: str
) -> None:
    run = screened.folder / "screening"
    complaint = refusal(load, screened, run, change(header_of(run)))
    assert complaint.startswith(f"--screening {run} ")
    assert said in complaint
    assert "make it anew" in complaint


def test_one_of_another_host_is_refused_unless_it_is_allowed(
    screened: Laboratory, tmp_path: Path
) -> None:
    run = copied(screened.folder / "screening", tmp_path / "run")
    host = run_host(machine="aarch64")
    note_about(run, host=to_json(host))
    header = replace(header_of(run), host=run_host(machine="x86_64"))
    with pytest.raises(OtherHostError, match="of another host than this search, with machine"):
        load(screened, run, header)
    given = GivenScreening.load(run, header, seeds_of(screened), allow_other_host=True)
    assert given.header.host == host  # so that the search can say so


@pytest.mark.slow
def test_a_search_that_is_finished_is_the_same_screening_and_is_not_made_one_again(
    screened: Laboratory, refusal: Refusal
) -> None:
    require_unsearched(screened.folder / "screening")
    screened.run("whole", **PLAN)
    given = [load(screened, screened.folder / name) for name in ("screening", "whole")]
    assert given[0].sha256 == given[1].sha256
    said = refusal(require_unsearched, screened.folder / "whole")
    assert "has searched from its seeds already: leave out --screen-only" in said


def test_one_that_has_not_all_seeds_is_refused(
    screened: Laboratory, tmp_path: Path, refusal: Refusal
) -> None:
    run = copied(screened.folder / "screening", tmp_path / "run")
    change_journal(run, "DELETE FROM answers WHERE role = 'seed' AND seed_id IN (0, 9)")
    assert refusal(load, screened, run) == (
        f"--screening {run} has answers to 8 of 10 seeds: finish it first with the command that"
        " began it and --resume"
    )


def test_what_is_no_run_or_damaged_is_refused(
    screened: Laboratory, tmp_path: Path, refusal: Refusal
) -> None:
    header = header_of(screened.folder / "screening")
    assert "there is no run directory" in refusal(load, screened, tmp_path / "absent", header)
    run = copied(screened.folder / "screening", tmp_path / "run")
    change_journal(run, "UPDATE answers SET device = x'00' WHERE role = 'seed'")
    assert "run.db is damaged" in refusal(load, screened, run, header)


def test_a_search_of_some_seeds_evaluates_no_seed_and_has_those_of_its_own(
    screened: Laboratory,
) -> None:
    screening = screened.folder / "screening"
    totals = search_part(screened, "part", SOME, screening, **PLAN)["totals"]
    assert totals["seeds"] == 2
    with (
        closing(RunJournal.open(screening / "run.db")) as theirs,
        closing(RunJournal.open(screened.folder / "part" / "run.db")) as mine,
    ):
        rows = mine.answers("seed")
        assert list(rows) == list(SOME)
        assert all(rows[seed_id] == theirs.answers("seed")[seed_id] for seed_id in rows)


class ReadsOthers(Strategy):
    """A strategy of another package, which says nothing of what it reads."""

    summary: ClassVar[str] = "keeps the donors"
    handed: ClassVar[list[Any]] = []

    def search(self, start: Start) -> SearchGenerator:
        """Keep the donors, and ask nothing."""
        self.handed.append(start.donors)
        return None
        yield


@pytest.fixture
def reads_others(monkeypatch: pytest.MonkeyPatch) -> type[ReadsOthers]:
    """Have `random` be a strategy that says nothing of what it reads."""
    entry = find_strategy("random")
    other = replace(entry, strategy=ReadsOthers)
    monkeypatch.setattr("edgeflare.campaign.search_phase.find_strategy", lambda _name: other)
    monkeypatch.setattr("edgeflare.campaign.screening_answers.find_strategy", lambda _name: other)
    ReadsOthers.handed.clear()
    return ReadsOthers


@pytest.mark.parametrize("find", list(Find))
def test_a_part_is_handed_the_donors_of_the_whole(
    tmp_path: Path, reads_others: type[ReadsOthers], find: Find
) -> None:
    laboratory = small_laboratory(tmp_path)
    laboratory.run("screening", phases=run_screening, goal=Goal(find))
    laboratory.run("whole", goal=Goal(find))
    whole = reads_others.handed.copy()
    reads_others.handed.clear()
    part = search_part(laboratory, "part", range(5), tmp_path / "screening", goal=Goal(find))
    assert len(reads_others.handed) == part["totals"]["searched"] > 0
    images = [[donor.input.tobytes() for donor in donors] for donors in whole]
    assert images[0]
    for donors in reads_others.handed:
        assert [donor.input.tobytes() for donor in donors] == images[0]
        assert [repr(one.outcome) for one in donors] == [repr(one.outcome) for one in whole[0]]


def plan_of(strategy: str, find: Find = Find.ANY, seed_ids: SeedIds | None = SOME) -> Plan:
    return Plan(strategy, Goal(find), ("board",), seed_ids=seed_ids)


@pytest.mark.parametrize("find", list(Find))
@pytest.mark.parametrize("strategy", sorted(strategies()))
def test_a_screening_is_needed_where_other_seeds_are_read(strategy: str, find: Find) -> None:
    plan = plan_of(strategy, find)
    reads = strategy == "donor" or (strategy.startswith("boundary") and find is Find.ANY)
    if reads:
        with pytest.raises(UserError, match=f"the strategy {strategy} reads how the other seeds"):
            require_screening(plan, None, screen_only=False)
    else:
        require_screening(plan, None, screen_only=False)
    require_screening(plan, None, screen_only=True)
    require_screening(plan, Path("screening"), screen_only=False)
    require_screening(replace(plan, seed_ids=None), None, screen_only=False)


def test_a_strategy_that_says_nothing_of_it_needs_one_and_a_search_of_all_seeds_none(
    reads_others: type[ReadsOthers], refusal: Refusal
) -> None:
    for find in Find:
        said = refusal(require_screening, plan_of("random", find), None, screen_only=False)
        assert "add --screening SCREENING here" in said
    plan = plan_of("donor", seed_ids=None)
    said = refusal(require_screening, plan, Path("screening"), screen_only=False)
    assert "--screening is for a search of some seeds: add --seed-ids" in said


def test_a_search_goes_on_with_the_screening_that_it_began_with(
    screened: Laboratory, tmp_path: Path, refusal: Refusal
) -> None:
    run = copied(screened.folder / "screening", tmp_path / "run")
    given = load(screened, run)
    other = replace(given, sha256=64 * "0")
    with closing(RunJournal.reopen(run / "run.db")) as journal:
        note_screening(journal, given, resumed=False)
        note_screening(journal, given, resumed=True)
        for now in (other, None):
            said = refusal(note_screening, journal, now, resumed=True)
            assert said.startswith(f"{run} was begun with --screening")
            assert ("of other answers" in said) == (now is not None)
        note_screening(journal, None, resumed=False)
        note_screening(journal, None, resumed=True)
        said = refusal(note_screening, journal, given, resumed=True)
        assert said.startswith(f"{run} was begun without --screening: repeat")


MODELS = ModelInputs(PairInterface(), [Tensor("image", (1, 3, 3, 1), "float32")], "the model")
DECODER = ClassDecoder((Tensor("scores", (1, 4), "float32"),), 0, "logits")


@pytest.fixture
def held_out(tmp_path: Path) -> HeldOut:
    path = tmp_path / "test.npz"
    images = np.arange(4 * 9, dtype=np.uint8).reshape(4, 3, 3, 1)
    np.savez(path, images=images, labels=np.arange(4))
    return HeldOut.load(path, MODELS, DECODER)


def test_it_is_loaded_as_seeds_are(held_out: HeldOut, tmp_path: Path) -> None:
    told = held_out.to_json()
    assert (told["inputs"], told["labels"]) == (4, [0, 1, 2, 3])
    assert told["path"] == str(tmp_path / "test.npz")
    with pytest.raises(UserError, match=r"--test: there are no seeds at .*absent\.npz"):
        HeldOut.load(tmp_path / "absent.npz", MODELS, DECODER)


def test_targets_that_do_not_fit_are_refused_and_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "test.npz"
    images, values = np.zeros((2, 3, 3, 1), np.uint8), np.array([[1.0], [2.0]])
    np.savez(path, images=images, targets=values)
    with pytest.raises(UserError, match=r"--test: seeds .*, seed 0: its task reads labels instead"):
        HeldOut.load(path, MODELS, DECODER)
    task = Regression(tolerance=1.0)
    tensor = Tensor("value", (1, 1), "float32")
    decoder = task.decoder(
        ModelOutputs("m.tflite", (tensor,), frozenset(), 0, (), lambda _: RawBatch(values))
    )
    truths = Truths.from_json(decoder, HeldOut.load(path, MODELS, decoder).to_json())
    assert [is_right(truths[0], truths[at]) for at in range(2)] == [True, True]
    assert truth_distance(truths[0], truths[1]) == 1.0


def test_a_run_is_resumed_with_the_same_images_alone(held_out: HeldOut, tmp_path: Path) -> None:
    journal = RunJournal.create(tmp_path / "run.db", {"seeds": 1})
    note_held_out(journal, held_out, resumed=False)
    note_held_out(journal, held_out, resumed=True)
    moved = HeldOut(tmp_path / "elsewhere.npz", held_out.inputs)
    note_held_out(journal, moved, resumed=True)
    one = held_out.inputs
    others = Seeds(255 - one.inputs, one.labels, one.names)
    for another in (None, HeldOut(held_out.path, others)):
        with pytest.raises(UserError, match=r"was begun with --test .*test\.npz"):
            note_held_out(journal, another, resumed=True)
    journal.close()


def test_a_run_that_was_begun_without_them_stays_so(held_out: HeldOut, tmp_path: Path) -> None:
    journal = RunJournal.create(tmp_path / "run.db", {"seeds": 1})
    with pytest.raises(UserError, match="was begun without --test"):
        note_held_out(journal, held_out, resumed=True)
    note_held_out(journal, None, resumed=True)
    journal.close()
