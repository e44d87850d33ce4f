"""`edgeflare explain` on real runs: what it writes, what it says, what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from called_commands import Said, call_here
from edgeflare.diagnose import explain_document
from tampering import EXAMPLE, constant_of, weighted, with_constant

pytestmark = pytest.mark.slow

MOST_DEVICE_QUERIES = 30


@pytest.fixture(scope="session")
def schema() -> jsonschema.Draft202012Validator:
    text = Path(explain_document.__file__).with_name("explain.schema.json").read_bytes()
    contents = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(contents)
    return jsonschema.Draft202012Validator(contents)


def edgeflare(*arguments: str | Path, code: int = 0) -> Said:
    """Call the command, which has to end in this exit code."""
    said = call_here(*arguments)
    assert said.code == code, said.err
    return said


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
    edgeflare("search", pair, *small, "--out", folder)
    return folder


def test_findings_are_explained_and_written(
    run: Path, pair: Path, schema: jsonschema.Draft202012Validator
) -> None:
    said = edgeflare("explain", run).out
    written = json.loads((run / "explain.json").read_bytes())
    schema.validate(written)
    document = json.loads((run / "run.json").read_bytes())
    found = [*document["findings"], *document["deviating_seeds"], *document["flaky"]]
    assert len(found) >= 2
    assert set(written["findings"]) == {str(one["seed_id"]) for one in found}
    assert written["pair"]["fingerprint"] == document["pair"]["fingerprint"]
    at = weighted((pair / "compressed.tflite").read_bytes())[1]
    for one in found:
        entry = written["findings"][str(one["seed_id"])]
        assert (entry["image"], entry["sha256"]) == (one["image"], one["sha256"])
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
        assert loss["first"]["operator"] == at
        assert loss["most"] == loss["first"]
        assert entry["device_and_twin"]["method"] == "capture"


def test_one_finding_is_shown_with_its_evidence_and_the_others_stay(run: Path) -> None:
    before = json.loads((run / "explain.json").read_bytes())
    chosen = sorted(before["findings"], key=int)[0]
    said = edgeflare("explain", run, f"findings/{int(chosen):06d}.png").out
    assert "Who answers what" in said
    assert "reference, 1 thread" in said
    assert "CONV_2D" in said
    after = json.loads((run / "explain.json").read_bytes())
    assert set(after["findings"]) == set(before["findings"])


def test_another_device_is_asked_in_place_of_the_runs_own(run: Path) -> None:
    known = json.loads((run / "explain.json").read_bytes())["findings"]
    chosen = sorted(known, key=int)[0]
    edgeflare("explain", run, chosen, "--device", "emulated-xnnpack")
    written = json.loads((run / "explain.json").read_bytes())
    entry = written["findings"][chosen]
    assert entry["device"] == "emulated-xnnpack"
    assert entry["evidence"]["recorded"] == []
    assert entry["device_and_twin"]["onset"] is None
    assert set(written["devices"]) == {one["device"] for one in written["findings"].values()}


def test_a_finding_that_is_not_there_is_refused(run: Path) -> None:
    said = edgeflare("explain", run, "999", code=2).err
    assert len(said.splitlines()) == 1
    assert "999 is no finding" in said


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    assert len(edgeflare("explain", tmp_path, code=2).err.splitlines()) == 1


def test_a_model_that_changed_is_refused(run: Path, pair: Path) -> None:
    compressed = pair / "compressed.tflite"
    content = compressed.read_bytes()
    try:
        compressed.write_bytes((EXAMPLE / "compressed.tflite").read_bytes())
        said = edgeflare("explain", run, code=2).err
    finally:
        compressed.write_bytes(content)
    assert len(said.splitlines()) == 1
    assert "compressed.tflite" in said


@pytest.fixture(autouse=True)
def _explained(request: pytest.FixtureRequest) -> Any:
    """Tests that look at explanations have some, also when they run by themselves."""
    if "run" in request.fixturenames:
        folder: Path = request.getfixturevalue("run")
        if not (folder / "explain.json").exists():
            edgeflare("explain", folder)
