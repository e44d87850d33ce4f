"""The canonical document: it keeps its schema, adds up, and says what the files say."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from statistics import fmean, median
from typing import Any

import jsonschema
import numpy as np
import pytest

from documents import LISTS, as_json
from edgeflare.errors import UserError
from edgeflare.run.derive_document import derive_document
from edgeflare.run.load_document import load_document
from edgeflare.run.nearness import nearness_db
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal

PUBLISHED = json.loads((files("edgeflare.run") / "run.schema.json").read_bytes())


@pytest.fixture(scope="session")
def schema() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)
    return jsonschema.Draft202012Validator(PUBLISHED)


@pytest.mark.slow
def test_it_keeps_its_schema(run: Any, schema: jsonschema.Draft202012Validator) -> None:
    schema.validate(run.document)


@pytest.mark.slow
def test_what_is_written_is_what_the_journal_says(run: Any) -> None:
    directory = RunDirectory(run.folder)
    journal = RunJournal.open(directory.journal)
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
    told = [entry["seed_id"] for key in LISTS for entry in document[key]]
    assert len(told) == len(set(told))  # no seed twice


def test_each_entry_says_what_its_files_say(run: Any) -> None:
    directory = RunDirectory(run.folder)
    for entry in run.document["findings"] + run.document["deviating_seeds"]:
        data = (run.folder / entry["file"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
        image, seed = (
            directory.load_input(entry[key]).astype(float) for key in ("file", "seed_file")
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


def test_a_folder_without_a_document_or_with_another_is_refused(run: Any, tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    with pytest.raises(UserError, match="no run directory"):
        load_document(directory)
    lacking = {key: value for key, value in run.document.items() if key not in ("find", "flaky")}
    for content, said in (
        ([], r"is not of the schema edgeflare\.run/v1"),
        ({"schema": "edgeflare.run/v9"}, r"is not of the schema edgeflare\.run/v1"),
        (lacking, r"run\.json is damaged: it has no (find|flaky)$"),
    ):
        directory.document.write_text(json.dumps(content))
        with pytest.raises(UserError, match=said):
            load_document(directory)


def crafted(run: Any, tmp_path: Path, key: str, value: Any) -> RunDirectory:
    """Return a copy of a run of which only the journal is left, with one thing said otherwise."""
    shutil.copytree(run.folder, tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    directory.document.unlink()
    with closing(RunJournal.reopen(directory.journal)) as journal:
        journal.note(key, value)
    return directory


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("stopped_by", "x"),
        ("health", []),
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
    assert (near["measure"], near["range_db"]) == ("SNR", [0.0, 50.0])
    assert [one["at_least_db"] for one in near["db"]] == [10.0, 15.0, 20.0, 25.0, 30.0, 40.0]
    known = [value for one in document.deviations if (value := nearness_db(one)) is not None]
    for one in near["db"]:
        assert one["seeds"] == sum(value >= one["at_least_db"] for value in known)


def test_a_journal_alone_says_the_same(run: Any, tmp_path: Path) -> None:
    directory = crafted(run, tmp_path, "warnings", [])
    assert as_json(load_document(directory)) == run.document
