"""`edgeflare explain` on real runs: what it writes, what it says, what it refuses."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jsonschema
import pytest

from called_commands import completed
from conformed_runs import BOARD
from documents import run_pair
from edgeflare.cli.explain import run_to_explain
from edgeflare.core.goal import Goal
from edgeflare.diagnose import explain_document
from edgeflare.diagnose.explain_document import (
    ExplainDocument,
    ExplainedFinding,
    Explanations,
    PendingFindings,
    left_over,
    load_explanations,
)
from edgeflare.diagnose.explain_findings import is_the_runs_own
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.replay.past_run import PastRun
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDevice
from edgeflare.run.run_journal import RunJournal
from tampering import EXAMPLE, constant_of, weighted, with_constant

MOST_DEVICE_QUERIES = 30


SCHEMA = json.loads(Path(explain_document.__file__).with_name("explain.schema.json").read_bytes())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example whose compressed model has a fault in its second convolution."""
    folder = tmp_path_factory.mktemp("pair") / "pair"
    shutil.copytree(EXAMPLE, folder)
    compressed = folder / "compressed.tflite"
    content = compressed.read_bytes()
    name = constant_of(content, weighted(content)[1])
    compressed.write_bytes(with_constant(content, name, lambda weights: weights // 2 * 2 + 1))
    return folder


@pytest.fixture(scope="module")
def run(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    small = ("--first", "4", "--max-queries", "100", "--shrink", "0", "--fail-on", "none")
    completed("search", pair, *small, "--out", folder)
    return folder


@pytest.mark.slow
def test_findings_are_explained_and_written(run: Path, pair: Path) -> None:
    said = completed("explain", run).out
    written = json.loads((run / "explain.json").read_bytes())
    jsonschema.validate(written, SCHEMA)
    document = json.loads((run / "run.json").read_bytes())
    found = [*document["findings"], *document["deviating_seeds"], *document["flaky"]]
    assert len(found) >= 2
    assert set(written["findings"]) == {str(one["seed_id"]) for one in found}
    assert written["pair"]["fingerprint"] == document["pair"]["fingerprint"]
    at = weighted((pair / "compressed.tflite").read_bytes())[1]
    for one in found:
        entry = written["findings"][str(one["seed_id"])]
        assert (entry["file"], entry["sha256"]) == (one["file"], one["sha256"])
        assert entry["cause"] == one["cause"]
        assert entry["device_queries"] <= MOST_DEVICE_QUERIES
        votes = entry["evidence"]["votes"]
        assert {vote["arm"] for vote in votes} == {"original", "twin", "device"}
        assert {vote["kernels"] for vote in votes if vote["arm"] == "twin"} == {
            "xnnpack",
            "builtin",
            "reference",
        }
        assert max(len(vote["labels"]) for vote in votes if vote["arm"] == "device") == 3
        assert min(len(vote["labels"]) for vote in votes) == 2
        if one["cause"] == "compression":
            assert entry["verdict"]["name"] == "compression"
            assert f"operator {at}" in said
        loss = entry["twin_and_original"]
        assert loss["first"]["operator_index"] == at
        assert loss["most"] == loss["first"]
        assert entry["device_and_twin"]["method"] == "capture"


@pytest.mark.slow
def test_one_finding_is_shown_with_its_evidence_and_the_others_stay(run: Path) -> None:
    before = json.loads((run / "explain.json").read_bytes())
    chosen = sorted(before["findings"], key=int)[0]
    said = completed("explain", run, f"findings/{int(chosen):06d}.png").out
    assert "Who answers what" in said
    assert "reference, 1 thread" in said
    assert "CONV_2D" in said
    after = json.loads((run / "explain.json").read_bytes())
    assert set(after["findings"]) == set(before["findings"])


@pytest.mark.slow
def test_another_device_is_asked_in_place_of_the_runs_own(run: Path) -> None:
    known = json.loads((run / "explain.json").read_bytes())["findings"]
    chosen = sorted(known, key=int)[0]
    completed("explain", run, chosen, "--device", "emulated-xnnpack")
    written = json.loads((run / "explain.json").read_bytes())
    entry = written["findings"][chosen]
    assert entry["device"] == "emulated-xnnpack"
    assert entry["evidence"]["recorded"] == []
    assert entry["device_and_twin"]["onset"] is None
    assert set(written["devices"]) == {one["device"] for one in written["findings"].values()}


@pytest.mark.slow
def test_what_cannot_be_explained_is_one_line(run: Path, pair: Path, tmp_path: Path) -> None:
    """A finding that is not there, a folder that is no run, and a model that changed."""
    compressed = pair / "compressed.tflite"
    content = compressed.read_bytes()
    for arguments, said in (
        ((run, "999"), "999 is no finding"),
        ((tmp_path,), str(tmp_path)),
        ((run,), "compressed.tflite"),
    ):
        try:
            if arguments == (run,):
                compressed.write_bytes((EXAMPLE / "compressed.tflite").read_bytes())
            refused = completed("explain", *arguments, code=2).err
        finally:
            compressed.write_bytes(content)
        assert len(refused.splitlines()) == 1
        assert said in refused


@pytest.fixture(autouse=True)
def _explained(request: pytest.FixtureRequest) -> Any:
    """Tests that look at explanations have some, also when they run by themselves."""
    if "run" in request.fixturenames:
        folder: Path = request.getfixturevalue("run")
        if not (folder / "explain.json").exists():
            completed("explain", folder)


# The file of the explanations while they are made: valid at any time, and what is left over.

ABOUT: Any = SimpleNamespace(pair=run_pair(fingerprint="f" * 64))


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def loaded(directory: RunDirectory) -> ExplainDocument:
    written = load_explanations(directory, ABOUT.pair.fingerprint)
    assert written is not None
    jsonschema.validate(json.loads((directory.path / "explain.json").read_bytes()), SCHEMA)
    return written


def pending(*seed_ids: int, device: str | None = None) -> PendingFindings:
    return PendingFindings(device=device, seed_ids=seed_ids)


def test_there_is_none_before_and_a_valid_one_from_the_beginning(directory: RunDirectory) -> None:
    """Explanations of another pair are none of ours."""
    assert load_explanations(directory, "f" * 64) is None
    Explanations(directory, ABOUT, None, pending(3, 1), None)
    assert loaded(directory).findings == {}
    assert left_over(loaded(directory), None) == [3, 1]
    Explanations(directory, ABOUT, None, pending(3), None)
    assert load_explanations(directory, "0" * 64) is None


def test_what_is_left_over_is_of_the_device_that_was_named(directory: RunDirectory) -> None:
    Explanations(directory, ABOUT, None, pending(3, device="a phone"), "a phone")
    assert left_over(loaded(directory), None) == left_over(None, None) == []
    assert left_over(loaded(directory), "a phone") == [3]


def test_a_finding_that_is_explained_elsewhere_is_still_left_over(directory: RunDirectory) -> None:
    for device, left in (("a phone", [3, 1]), (None, [1])):
        kept = Explanations(directory, ABOUT, None, pending(3, 1), device)
        kept.add(cast("ExplainedFinding", SimpleNamespace(seed_id=3)))
        assert kept.pending == left


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b'{"schema": 1}'])
def test_a_damaged_one_says_what_makes_it_again(directory: RunDirectory, content: bytes) -> None:
    (directory.path / "explain.json").write_bytes(content)
    with pytest.raises(UserError) as refused:
        load_explanations(directory, "f" * 64)
    assert str(refused.value).startswith(f"{directory.path / 'explain.json'} is ")
    assert str(refused.value).endswith(f"; make it again with `edgeflare explain {directory.path}`")


def test_one_that_cannot_be_read_says_so(directory: RunDirectory) -> None:
    (directory.path / "explain.json").mkdir()
    with pytest.raises(UserError, match=r"explain\.json is not a regular file"):
        load_explanations(directory, "f" * 64)


@pytest.mark.parametrize(("unmutated", "known"), [("figures", {3}), (None, set())])
def test_seeds_of_what_was_found_do_not_say_how_often_arms_disagree(
    unmutated: str | None, known: set[int], monkeypatch: pytest.MonkeyPatch, directory: RunDirectory
) -> None:
    """A survey and a replay, which have no figures of seeds as they come, evaluate these alone."""
    journal = SimpleNamespace(answers=lambda _: {3: []})
    monkeypatch.setattr(RunJournal, "read", lambda _: nullcontext(journal))
    past = SimpleNamespace(
        directory=directory,
        document=SimpleNamespace(unmutated=unmutated),
        header=ABOUT,
        searched_seeds=lambda _: None,
    )
    assert run_to_explain(cast("PastRun", past), cast("Pair", None)).seed_rows.keys() == known


# Whether the device that explains findings is the one that made them.


@pytest.mark.parametrize(
    ("changed", "is_same"),
    [
        ({}, True),
        ({"cpu_features": ("asimd", "asimddp", "fp")}, False),
        ({"threads": 4}, False),
        ({"cores": 2, "delegated_nodes": 3}, True),
    ],
    ids=["itself", "other features", "other threads", "fewer cores"],
)
def test_a_device_that_may_answer_otherwise_is_not_the_runs_own(
    changed: dict[str, Any], is_same: bool
) -> None:
    plan = Plan("boundary", Goal(), ("board",))
    header: Any = SimpleNamespace(plan=plan, devices=(RunDevice(name="board", provenance=BOARD),))
    now = replace(BOARD, **changed)
    device: Any = SimpleNamespace(profile=SimpleNamespace(name="board"), provenance=now)
    assert is_the_runs_own(header, device) == is_same
