"""What a campaign does about a device that changes its mind."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from documents import Document, as_json
from edgeflare.campaign.device_health import Canaries
from edgeflare.core.query import Arm
from edgeflare.domains.image.preprocess import ImageEncoder, Preprocess
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from laboratory import SIGNATURE, Laboratory, untimed
from linear_laboratory import linear_laboratory
from scripted_health import scripted_device
from wrapped_evaluators import Altered


def canary_of(laboratory: Laboratory) -> NDArray[np.generic]:
    """The first seed, as a device is given it."""
    first: NDArray[np.generic]
    (first,) = ImageEncoder(Preprocess(), SIGNATURE.input).encode(laboratory.images[:1])
    return first


def forger(laboratory: Laboratory, changes: dict[int, float], *, screened: bool = True) -> Any:
    """Wrap devices so that the canary's answer changes: below 1 its scores, from 1 on its label.

    Keys are the how-manieth canary; -1 stands for all others. What is asked as a seed is none.
    """
    canary = canary_of(laboratory)

    def wrap(inner: Evaluator) -> Evaluator:
        asked = count(0 if screened else 1)

        def alter(image: NDArray[np.generic], scores: NDArray[np.generic]) -> NDArray[np.generic]:
            number = next(asked) if np.array_equal(image, canary) else 0
            amount = changes.get(number, changes.get(-1, 0.0)) if number else 0.0
            if amount >= 1:
                return np.roll(scores, 1)
            moved: NDArray[np.generic] = scores.astype(np.float32) + np.float32(amount)
            return moved

        return Altered(inner, alter)

    return wrap


def going_wrong(laboratory: Laboratory, after: int) -> Any:
    """Wrap devices so that the first, after so many inputs, gives a wrong label to some of them.

    The canary is among these.
    """
    canary, wrapped, asked = canary_of(laboratory), count(), count()

    def alter(image: NDArray[np.generic], scores: NDArray[np.generic]) -> NDArray[np.generic]:
        some = np.array_equal(image, canary) or crc32(image.tobytes()) % 25 == 0
        return np.roll(scores, 1) if next(asked) >= after and some else scores

    return lambda inner: inner if next(wrapped) else Altered(inner, alter)


def without_warnings(document: Document) -> Document:
    """A document without times, and without what was seen of its devices."""
    return {key: value for key, value in untimed(document).items() if key != "warnings"}


def rows(folder: Path, table: str, columns: str = "*") -> dict[Any, Any]:
    """The rows of a table of a journal, by their first column; they have no times."""
    with closing(sqlite3.connect(folder / "run.db")) as db:
        return {row[0]: row for row in db.execute(f"SELECT {columns} FROM {table}")}  # noqa: S608


@dataclass(frozen=True)
class WholeRun:
    """A run of the laboratory on one sound device that is asked canaries, to its end."""

    folder: Path
    document: Document

    def equals(self, other: Document) -> bool:
        return without_warnings(other) == without_warnings(self.document)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    laboratory = linear_laboratory(tmp_path_factory.mktemp("whole"))
    laboratory.monitored = (scripted_device(),)
    return WholeRun(laboratory.folder / "whole", laboratory.run("whole"))


CHAIN = "seed_id, ended, queries, device_queries, ties"
STEP = "role || ' ' || seed_id || ' ' || n, device"


def open_answers(folder: Path, which: str = "1") -> dict[Any, Any]:
    """What a journal holds of the device in chains that are open."""
    return rows(folder, f"answers WHERE role IN ('step', 'refine') AND {which}", STEP)


@pytest.fixture
def true_answers(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """All that sound devices are recorded to answer while the fixture's users fill it."""
    told: dict[Any, Any] = {}
    write = RunJournal.write_batch

    def write_and_tell(self: RunJournal, answers: Sequence[AnswerRow]) -> None:
        for row in answers:
            key = f"{row.role} {row.seed_id} {row.n}"
            told.setdefault(key, (key, row.device))
        write(self, answers)

    monkeypatch.setattr(RunJournal, "write_batch", write_and_tell)
    return told


def run_until_it_fails(
    laboratory: Laboratory, after: int, name: str = "run", **wanted: Any
) -> Document:
    """Run on devices of which the first goes wrong after so many inputs that are no seeds."""
    screened = len(laboratory.images) // (1 + len(laboratory.more_devices))
    with pytest.raises(InfrastructureError, match=r"its answer to seed \d has changed"):
        laboratory.run(name, wrap_device=going_wrong(laboratory, after + screened), **wanted)
    return as_json(load_document(RunDirectory(laboratory.folder / name)))


@pytest.mark.slow
@pytest.mark.parametrize("chains", [1, 512])
def test_canaries_are_asked_as_often_as_the_profile_says_and_change_nothing(
    laboratory: Laboratory, chains: int
) -> None:
    without = laboratory.run("without", chains=chains)
    laboratory.monitored = (scripted_device(),)
    document = laboratory.run("with", chains=chains)
    asked = document["totals"]["device_queries"] // 100
    assert asked > 5
    assert document["health"][0]["canaries"] == {"same": asked}
    for key in ("overhead_queries", "overhead_device_queries"):
        assert document["totals"][key] == without["totals"][key] + asked
        document["totals"][key] = without["totals"][key]
    assert untimed(document) == untimed(without)


def test_a_run_that_was_stopped_asks_no_canary_twice(
    laboratory: Laboratory, whole: WholeRun
) -> None:
    laboratory.monitored = (scripted_device(),)
    for stop_after in (150, 420, 777, None):
        parts = laboratory.run("parts", resume=stop_after != 150, stop_after=stop_after)
    assert untimed(parts) == untimed(whole.document)
    assert parts["health"][0]["canaries"] == whole.document["health"][0]["canaries"]


def test_refining_asks_canaries_too(laboratory: Laboratory) -> None:
    laboratory.monitored = (scripted_device(canary_every=20),)
    whole = laboratory.run("whole", shrink=60)
    refined = sum(one["refined"]["device_queries"] for one in whole["findings"])
    assert refined > 3 * 20
    asked = (whole["totals"]["device_queries"] + refined) // 20
    assert whole["health"][0]["canaries"] == {"same": asked}

    laboratory.run("parts", stop_after=500, shrink=60)
    parts = laboratory.run("parts", resume=True, shrink=60)
    assert untimed(parts) == untimed(whole)
    assert parts["health"][0]["canaries"] == {"same": asked}


def test_an_answer_that_has_changed_for_good_ends_the_run_and_is_looked_at_on_resume(
    laboratory: Laboratory, whole: WholeRun
) -> None:
    laboratory.monitored = (scripted_device(),)
    drifted = forger(laboratory, {**dict.fromkeys(range(1, 4), 0.0), -1: 1.0})
    with pytest.raises(
        InfrastructureError,
        match=r"^board: its answer to seed 0 has changed from class \d to class \d, somewhere after"
        r" 300 device queries: what it answered since then is not to be trusted",
    ):
        laboratory.run("run", wrap_device=drifted)
    document = load_document(RunDirectory(laboratory.folder / "run"))
    assert document.stopped_by == "infrastructure"
    assert document.health is not None
    assert document.health[0].failed
    assert document.findings == ()  # nothing is verified on such a device
    assert any("is not to be trusted" in line for line in document.warnings)

    with pytest.raises(InfrastructureError, match=r"after \d00 device queries"):
        laboratory.run(
            "run", wrap_device=forger(laboratory, {-1: 1.0}, screened=False), resume=True
        )

    cured = laboratory.run("run", resume=True)
    assert not cured["health"][0]["failed"]
    assert whole.equals(cured)


def test_an_answer_that_changes_once_is_told_and_survived(laboratory: Laboratory) -> None:
    laboratory.monitored = (scripted_device(),)
    document = laboratory.run("run", wrap_device=forger(laboratory, {3: 1.0}))
    (warning,) = [line for line in document["warnings"] if "canary" in line]
    assert warning.startswith("board answered its canary, seed 0, with class ")
    assert warning.endswith(" once, and rightly when asked again")
    assert document["health"][0]["canaries"]["changed"] == 1
    assert document["stopped_by"] is None


def test_outputs_that_vary_under_the_same_label_are_told_once(laboratory: Laboratory) -> None:
    laboratory.monitored = (scripted_device(),)
    document = laboratory.run("run", wrap_device=forger(laboratory, {-1: 0.25}))
    assert [line for line in document["warnings"] if "to the bit" in line] == [
        "board does not repeat its answers to the bit: the label of its canary, seed 0, held, and"
        " its outputs varied"
    ]
    assert document["health"][0]["canaries"]["varied"] > 5


@pytest.mark.parametrize("after", [40, 250])
def test_what_a_device_answered_since_its_last_good_canary_is_dropped_and_asked_again(
    laboratory: Laboratory, whole: WholeRun, true_answers: dict[Any, Any], after: int
) -> None:
    laboratory.monitored = (scripted_device(),)
    document = run_until_it_fails(laboratory, after)
    assert "was dropped, and is asked again on --resume" in document["warnings"][-1]
    good = document["health"][0]["canaries"].get("same", 0)
    assert document["health"][0]["canaries"]["changed"] == 1
    assert bool(good) == (after > 100)

    run, undisturbed = laboratory.folder / "run", whole.folder
    held = open_answers(run)
    assert bool(held) == (good > 0)
    assert held == {key: true_answers[key] for key in held}
    chains, triggers = rows(run, "chains", CHAIN), rows(run, "triggers")
    assert chains.items() <= rows(undisturbed, "chains", CHAIN).items()
    assert triggers.items() <= rows(undisturbed, "triggers").items()
    found = {f"{seed_id:06d}.png" for seed_id in chains.keys() & triggers.keys()}
    assert {path.name for path in run.glob("findings/*")} == found

    cured = laboratory.run("run", resume=True)
    assert whole.equals(cured)
    assert not cured["health"][0]["failed"]


def test_a_device_that_goes_wrong_while_findings_are_refined_loses_refinements_only(
    laboratory: Laboratory,
) -> None:
    laboratory.monitored = (scripted_device(canary_every=50),)
    wanted: dict[str, Any] = {"shrink": 60}
    whole = laboratory.run("whole", **wanted)
    searched = whole["totals"]["device_queries"] * 51 // 50
    refined = sum(one["refined"]["device_queries"] for one in whole["findings"])
    lost = []
    for after in (refined // 4, refined * 3 // 4):
        document = run_until_it_fails(laboratory, searched + after, name=f"after {after}", **wanted)
        run = laboratory.folder / f"after {after}"
        held = rows(run, "refinements")
        assert held.items() <= rows(laboratory.folder / "whole", "refinements").items()
        lost.append(int(re.findall(r"(\d+) refinements", document["warnings"][-1])[0]))
        assert rows(run, "chains", CHAIN) == rows(laboratory.folder / "whole", "chains", CHAIN)
        cured = laboratory.run(run.name, resume=True, **wanted)
        assert without_warnings(cured) == without_warnings(whole)
    assert any(lost)


def test_what_the_other_device_answered_stays(laboratory: Laboratory) -> None:
    laboratory.more_devices = (laboratory.models[Arm.DEVICE],)
    laboratory.monitored = (scripted_device(canary_every=50), scripted_device(canary_every=0))
    whole = laboratory.run("whole")
    run_until_it_fails(laboratory, 20)
    run = laboratory.folder / "run"
    assert not open_answers(run, "seed_id % 2 = 0")
    assert open_answers(run, "seed_id % 2 = 1")
    cured = laboratory.run("run", resume=True)
    assert without_warnings(cured) == without_warnings(whole)


@pytest.mark.parametrize(
    ("owner", "name"), [(Canaries, "check"), (Canaries, "_fail"), (RunJournal, "drop_canaries")]
)
def test_a_kill_between_the_failure_and_the_drop_is_made_up_for(
    laboratory: Laboratory, whole: WholeRun, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    laboratory.monitored = (scripted_device(),)
    real = getattr(owner, name)

    def killed(self: Any, *given: Any) -> None:
        changed = name != "check" or any(
            self._references[canary.index][1].raw[Arm.DEVICE] != one.raw[Arm.DEVICE]
            for canary, one in self._answered
        )
        if changed:
            raise KeyboardInterrupt
        real(self, *given)

    monkeypatch.setattr(owner, name, killed)
    with pytest.raises(KeyboardInterrupt):
        laboratory.run("run", wrap_device=going_wrong(laboratory, 250 + 24))
    monkeypatch.setattr(owner, name, real)
    cured = laboratory.run("run", resume=True)
    assert any("was dropped" in line for line in cured["warnings"])
    assert whole.equals(cured)
