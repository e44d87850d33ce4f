"""The canonical document: it keeps its schema, adds up, and says what the files say."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from statistics import fmean, median
from typing import Any

import jsonschema
import numpy as np
import pytest

from documents import as_json
from edgeflare.errors import UserError
from edgeflare.report.figure_lines import who_was_right
from edgeflare.run import run_document as report_document
from edgeflare.run.derive_document import derive_document
from edgeflare.run.harm import rank
from edgeflare.run.journal import Journal
from edgeflare.run.load_document import load_document
from edgeflare.run.nearness import counts, nearness_db
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json


@pytest.fixture(scope="session")
def schema() -> jsonschema.Draft202012Validator:
    text = Path(report_document.__file__).with_name("run.schema.json").read_bytes()
    contents = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(contents)
    return jsonschema.Draft202012Validator(contents)


@pytest.mark.slow
def test_it_keeps_its_schema(run: Any, schema: jsonschema.Draft202012Validator) -> None:
    schema.validate(run.document)


def test_what_is_written_is_what_the_journal_says(run: Any) -> None:
    directory = RunDirectory(run.folder)
    journal = Journal.open(directory.journal)
    derived = derive_document(directory, journal)
    journal.close()
    assert as_json(derived) == run.document == as_json(load_document(directory))
    assert json.loads(directory.document.read_bytes()) == run.document


def test_the_totals_add_up(run: Any) -> None:
    document, totals = run.document, run.document["totals"]
    found = document["findings"]
    searched = totals["seeds"] - totals["deviating_seeds"]
    assert totals["findings"] == len(found)
    assert totals["deviating_seeds"] == len(document["deviating_seeds"])
    assert totals["flaky"] == len(document["flaky"])
    assert totals["searched"] == searched
    assert totals["success_rate"] == len(found) / searched
    for figure in ("queries", "device_queries", "seconds"):
        assert totals[f"mean_{figure}"] == pytest.approx(fmean(e[figure] for e in found))
    assert totals["median_queries"] == median(entry["queries"] for entry in found)
    spent = sum(entry["queries"] for entry in found)
    assert totals["queries"] == spent + (searched - len(found)) * document["plan"]["max_queries"]
    assert totals["device_queries"] <= totals["queries"]
    verified = 3 * (len(found) + len(document["deviating_seeds"]) + len(document["flaky"]))
    assert totals["overhead_queries"] == totals["seeds"] + verified
    assert totals["overhead_device_queries"] == totals["overhead_queries"]
    seconds = [value for key, value in totals.items() if key.endswith("_seconds")]
    assert all(value >= 0 for value in seconds)
    assert sum(entry["seconds"] for entry in found) > 0


def test_no_seed_is_told_of_twice(run: Any) -> None:
    keys = ("findings", "deviating_seeds", "flaky", "unverified")
    ids = [entry["seed_id"] for key in keys for entry in run.document[key]]
    assert len(ids) == len(set(ids))


def test_each_entry_says_what_its_files_say(run: Any) -> None:
    directory = RunDirectory(run.folder)
    for entry in run.document["findings"] + run.document["deviating_seeds"]:
        data = (run.folder / entry["image"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        image, seed = (
            directory.load_input(entry[key]).astype(float) for key in ("image", "seed_image")
        )
        change = np.abs(image - seed)
        assert entry["distortion"] == {
            "l2": pytest.approx(np.sqrt((change**2).sum())),
            "linf": change.max(),
            "mean_abs": pytest.approx(change.mean()),
            "changed": change.any(axis=2).sum(),
        }


def test_each_entry_agrees_with_itself(run: Any) -> None:
    for entry in run.document["findings"] + run.document["deviating_seeds"]:
        labels, probabilities = entry["labels"], entry["probabilities"]
        for arm, label in labels.items():
            assert np.argmax(probabilities[arm]) == label
            assert sum(probabilities[arm]) == pytest.approx(1.0, abs=1e-6)
        f, h, g = (labels[arm] for arm in ("original", "twin", "device"))
        cause = "compression" if h == g else "kernel" if f in (h, g) else "mixed"
        assert entry["cause"] == ("mixed" if entry["tied"]["twin"] else cause)
        before, after = probabilities["original"], probabilities["device"]
        assert entry["strength"] == pytest.approx(
            min(before[f] - before[g], after[g] - after[f]), abs=1e-6
        )
        assert entry["seen"] == [labels] * 3
        assert entry["verified"]


def test_a_folder_that_holds_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run directory"):
        load_document(RunDirectory(tmp_path))


@pytest.mark.parametrize("text", ["[]", '{"schema": "edgeflare.run/v9"}'])
def test_a_document_of_another_kind_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UserError, match=r"is not of the schema edgeflare\.run/v1"):
        load_document(RunDirectory(tmp_path))


def test_a_document_that_lacks_something_is_damaged(
    run: Any, schema: jsonschema.Draft202012Validator, tmp_path: Path
) -> None:
    directory = RunDirectory(tmp_path)
    rest = {key: value for key, value in run.document.items() if key not in ("find", "flaky")}
    directory.document.write_text(json.dumps(rest))
    with pytest.raises(UserError, match=r"run\.json is damaged: it has no find, flaky$"):
        load_document(directory)


def crafted(run: Any, tmp_path: Path, key: str, value: Any) -> RunDirectory:
    """Return a copy of a run of which only the journal is left, with one thing said otherwise."""
    shutil.copytree(run.folder, tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    directory.document.unlink()
    with closing(Journal.reopen(directory.journal)) as journal:
        journal.note(key, value)
    return directory


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stopped_by", "x"),
        ("health", []),
        ("health", 3),
        ("classes", [1, 2]),
        ("notes", [1]),
        ("seeds", float("inf")),
        ("pair", {"name": 3}),
        ("labels", [0]),
        ("nearness", {"name": "SNR"}),
        ("nearness", {"name": "SNR", "within": 20.0, "curve": [0.0]}),
    ],
)
def test_what_is_derived_from_a_journal_keeps_its_schema_too(
    run: Any, tmp_path: Path, key: str, value: Any
) -> None:
    with pytest.raises(UserError, match=r"run\.db is damaged"):
        load_document(crafted(run, tmp_path, key, value))


def test_a_journal_alone_says_what_the_document_says(run: Any, tmp_path: Path) -> None:
    directory = crafted(run, tmp_path, "warnings", [])
    assert as_json(load_document(directory)) == run.document


def test_distances_are_by_the_measure_that_the_journal_notes(
    run: Any, schema: jsonschema.Draft202012Validator, tmp_path: Path
) -> None:
    measure = {"name": "SNR", "within": 20.0, "curve": [0.0, 50.0]}
    document = load_document(crafted(run, tmp_path, "nearness", measure))
    fields = as_json(document)
    schema.validate(fields)
    for entry, before in zip(fields["findings"], run.document["findings"], strict=True):
        assert entry["nearness_db"] == before["nearness_db"]  # what was noted when it was stored
        assert entry["within"] == before["within"]
    near = fields["nearness"]
    assert (near["measure"], near["curve"]) == ("SNR", [0.0, 50.0])
    assert [one["at_least"] for one in near["db"]] == [10.0, 15.0, 20.0, 25.0, 30.0, 40.0]
    known = [value for one in document.deviations if (value := nearness_db(one)) is not None]
    for one in near["db"]:
        assert one["seeds"] == sum(value >= one["at_least"] for value in known)


def test_an_older_journal_notes_no_nearness_and_says_the_same(run: Any, tmp_path: Path) -> None:
    directory = crafted(run, tmp_path, "warnings", [])
    with closing(sqlite3.connect(directory.journal)) as db, db:
        db.execute("DROP TABLE nearness")
        db.execute("DELETE FROM about WHERE key = 'nearness'")
    assert as_json(load_document(directory)) == run.document


def test_keys_that_older_versions_did_not_write_stay_absent(run: Any) -> None:
    older = deepcopy(run.document)
    for key in ("host", "health", "unmutated", "nearness"):
        older.pop(key, None)
    del older["totals"]["duplicates"]
    for entry in (*older["findings"], *older["deviating_seeds"]):
        for key in ("seed_name", "harm", "nearness_db", "within", "strong"):
            del entry[key]
    read = from_json(older)
    assert as_json(read) == older
    assert [rank(entry) for entry in read.findings] == [2] * len(read.findings)  # unlabelled
    assert all(map(counts, read.findings))
    assert {nearness_db(entry) for entry in read.findings} == {None}
    assert {who_was_right(entry) for entry in read.deviations} == {None}
