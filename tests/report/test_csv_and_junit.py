"""The entries of a run as CSV and as JUnit XML: exact, valid, and read by others as it is meant."""

from __future__ import annotations

import csv
import io
from copy import deepcopy
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from documents import REFINED, REPLAY, Document, run_document
from edgeflare.report.run_csv import COLUMNS, run_csv
from edgeflare.report.run_suite import run_suite
from edgeflare.run.gate import counted
from edgeflare.run.run_document import from_json
from junit_suites import parsed_suite, schemas
from recorded_run import Run

HERE = Path(__file__).parent
NOTHING: Document = {
    "labels": {}, "probabilities": {}, "tied": {}, "cause": None, "strength": None,
}  # fmt: skip
"""What an entry that was not verified has."""


@pytest.fixture
def document(document: Document) -> Document:
    document["classes"] = ["ant", '<bee>, "big"', "c\nat"]
    return document


def read(document: Document) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(run_csv(from_json(document)), newline=""), strict=True)
    rows = list(reader)
    assert reader.fieldnames == list(COLUMNS)
    return rows


@pytest.mark.slow
def test_every_entry_has_a_row_and_every_figure_is_exact(document: Document) -> None:
    rows = read(document)
    entries = [*document["deviating_seeds"], *document["findings"]]
    assert [int(row["seed_id"]) for row in rows] == [entry["seed_id"] for entry in entries]
    lists = ["deviating seed"] * len(document["deviating_seeds"])
    assert [row["list"] for row in rows] == lists + ["finding"] * len(document["findings"])
    for row, entry in zip(rows, entries, strict=True):
        assert float(row["strength"]) == entry["strength"]
        assert int(row["queries"]) == entry["queries"]
        for name, distance in entry["distortion"].items():
            assert float(row[name]) == distance
        for arm, label in entry["labels"].items():
            assert int(row[arm]) == label
            assert row[f"{arm}_class"] == document["classes"][label]
            assert float(row[f"{arm}_probability"]) == entry["probabilities"][arm][label]
        assert row["operators"].split() == entry["operators"]
        assert row["sha256"] == entry["sha256"]


def test_what_is_unknown_stays_empty(document: Document) -> None:
    entry = document["findings"][0]
    entry |= {"kind": "crash", "strength": None, "seed_label": None}
    entry["labels"]["device"], entry["probabilities"]["device"] = None, []
    (row,) = read({**document, "findings": [entry], "deviating_seeds": []})
    assert row["kind"] == "crash"
    assert [row[name] for name in ("strength", "seed_label", "device", "device_class")] == [""] * 4
    assert row["refined"] == "False"
    assert read({**document, "findings": [], "deviating_seeds": []}) == []


def test_refinement_has_its_columns(document: Document) -> None:
    entry = document["findings"][0]
    distance = {"l2": 4321.5, "linf": 200.0, "mean_abs": 9.0, "changed": 36}
    entry["refined"] = {**REFINED, "strength_before": 0.001, "distortion_before": distance}
    (row,) = read({**document, "findings": [entry], "deviating_seeds": []})
    assert (row["refined"], row["strength_before"], row["l2_before"]) == ("True", "0.001", "4321.5")


def test_gradients_and_targets_have_columns_where_there_are_any() -> None:
    asked = {"host_gradients": 8, "translated_evaluations": 20, "seed_target": "0.5, 2"}
    text = run_csv(run_document(findings=[asked, {}]))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [[row[name] for name in asked] for row in rows] == [["8", "20", "0.5, 2"], [""] * 3]


def test_entries_that_do_not_count_are_named_so(document: Document) -> None:
    first, second, third, *rest = document["findings"]
    rows = read(
        {
            **document,
            "findings": rest,
            "flaky": [first],
            "unverified": [{**second, **NOTHING}],
            "replay": {**REPLAY, "mended": [third]},
        }
    )
    named = {row["list"]: row for row in rows}
    ids = [named[name]["seed_id"] for name in ("flaky", "unverified", "mended")]
    assert ids == [str(one["seed_id"]) for one in (first, second, third)]
    assert named["unverified"]["original"] == ""


def suite_of(document: Document) -> ElementTree.Element:
    return parsed_suite(run_suite(from_json(document)))


def failures(suite: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {
        case.attrib["name"]: failure
        for case in suite.iter("testcase")
        if (failure := case.find("failure")) is not None
    }


def skipped(suite: ElementTree.Element) -> set[str]:
    return {
        case.attrib["name"] for case in suite.iter("testcase") if case.find("skipped") is not None
    }


def seeds(*entries: Document) -> set[str]:
    return {f"seed {entry['seed_id']}" for entry in entries}


def failure_of(document: Document, entry: Document) -> ElementTree.Element:
    return failures(suite_of(document))[f"seed {entry['seed_id']}"]


def properties(suite: ElementTree.Element) -> dict[str, str]:
    return {entry.attrib["name"]: entry.attrib["value"] for entry in suite.iter("property")}


def test_each_seed_is_a_case_and_what_deviates_fails(document: Document) -> None:
    suite = suite_of(document)
    names = [case.attrib["name"] for case in suite.iter("testcase")]
    assert names == [f"seed {seed_id}" for seed_id in range(document["totals"]["seeds"])]
    found = [*document["findings"], *document["deviating_seeds"]]
    assert set(failures(suite)) == seeds(*found)
    assert suite.attrib["tests"] == str(len(names))
    assert suite.attrib["failures"] == str(len(found))
    assert suite.attrib["skipped"] == "0"
    passed = suite_of({**document, "findings": [], "deviating_seeds": []})
    assert (failures(passed), passed.attrib["failures"]) == ({}, "0")


def test_a_failure_says_who_decided_what_and_where_the_input_is(document: Document) -> None:
    entry = document["findings"][0]
    entry |= {"labels": {"original": 0, "twin": 1, "device": 1}, "cause": "compression"}
    entry["strength"] = 0.25
    failure = failure_of(document, entry)
    assert failure.attrib == {
        "message": 'compression: original: ant; twin, device: <bee>, "big" (strength 0.2500)',
        "type": "compression",
    }
    assert failure.text is not None
    for detail in (entry["file"], entry["sha256"], entry["seed_file"], *entry["operators"]):
        assert detail in failure.text
    itself = document["deviating_seeds"][0]
    said = failure_of(document, itself).attrib["message"]
    assert said.startswith(f"the seed itself deviates, {itself['cause']}: ")


def test_a_crash_is_a_failure_of_its_own_type(document: Document) -> None:
    entry = document["findings"][0]
    entry |= {"kind": "crash", "strength": None}
    entry["labels"]["device"] = None
    failure = failure_of(document, entry)
    assert failure.attrib["type"] == "crash"
    assert "device: crash (strength –)" in failure.attrib["message"]


def test_what_a_stopped_run_did_not_decide_is_skipped(document: Document) -> None:
    first, second, *rest = document["findings"]
    document |= {"findings": rest, "unverified": [first], "flaky": [second]}
    document["totals"]["searched"] -= 1
    document["stopped_by"] = "interrupt"
    suite = suite_of(document)
    assert seeds(first) <= skipped(suite)
    assert not seeds(second) & (skipped(suite) | set(failures(suite)))
    assert len(skipped(suite)) == int(suite.attrib["skipped"]) > 1
    assert not skipped(suite) & set(failures(suite))


def test_junit_says_what_ran_where(document: Document) -> None:
    said = properties(suite_of(document))
    assert said["pair name"] == "laboratory"
    assert said["plan strategy"] == document["strategy"]
    assert said[f"device {document['devices'][0]['name']} machine"] == "laboratory"


PHASES = ("setup_seconds", "wall_seconds", "refine_seconds", "verify_seconds")


def test_the_times_are_those_of_the_run(document: Document) -> None:
    """Jenkins takes long and short ones."""
    suite = suite_of(document)
    whole = sum(document["totals"][phase] for phase in PHASES)
    assert float(suite.attrib["time"]) == pytest.approx(whole, abs=1e-3)
    by_name = {case.attrib["name"]: case for case in suite.iter("testcase")}
    for entry in document["findings"]:
        case = by_name[f"seed {entry['seed_id']}"]
        assert float(case.attrib["time"]) == pytest.approx(entry["seconds"], abs=1e-3)
    for seconds in (0.0, 4e-7, 59.9996, 1e6 / 3):
        document["totals"] |= dict.fromkeys(PHASES, 0.0) | {"wall_seconds": seconds}
        assert float(suite_of(document).attrib["time"]) == pytest.approx(seconds, abs=1e-3)


@pytest.mark.slow
@given(st.text(st.characters(), min_size=1), st.text(st.characters()))
def test_any_name_gives_valid_xml(run: Run, name: str, pair: str) -> None:
    document: Document = deepcopy(run.document)
    document["classes"] = [name] * 3
    document["pair"]["name"] = pair
    assert failures(suite_of(document))


@pytest.mark.parametrize(
    "broken",
    [
        b"<testsuites><testsuite name='x'/></testsuites>",
        b"<testsuites/>",
        b"<testsuites><testcase name='x' classname='y' time='0'/></testsuites>",
    ],
)
def test_the_schema_refuses_what_readers_would(broken: bytes) -> None:
    with pytest.raises(xmlschema.XMLSchemaException):
        schemas()[1].validate(broken.decode())


def test_the_cases_of_a_replay_are_what_it_tried(document: Document) -> None:
    mended, worse, unstable, waiting, *still = document["findings"]
    ids = [entry["seed_id"] for entry in (*document["findings"], *document["deviating_seeds"])]
    assert ids != list(range(len(ids)))
    document |= {"findings": still, "flaky": [unstable], "unverified": [waiting]}
    document["replay"] = {
        **REPLAY, "mended": [mended, worse], "deviating_seeds": [worse["seed_id"]],
    }  # fmt: skip
    document["totals"]["seeds"] = len(ids)
    suite = suite_of(document)
    names = [case.attrib["name"] for case in suite.iter("testcase")]
    assert names == [f"seed {seed_id}" for seed_id in sorted(ids)]
    failed = failures(suite)
    assert set(names) - set(failed) - skipped(suite) == seeds(mended)
    assert skipped(suite) == seeds(waiting)
    assert failed[f"seed {unstable['seed_id']}"].attrib["message"].startswith("unstable, ")
    assert "only the seed itself" in failed[f"seed {worse['seed_id']}"].attrib["message"]
    assert suite.attrib["tests"] == str(len(ids))
    assert suite.attrib["failures"] == str(len(failed))


def test_against_a_baseline_only_what_is_new_fails(document: Document) -> None:
    known, new, worse, waiting = document["findings"]
    document |= {"findings": [known], "flaky": [new], "unverified": [waiting]}
    document["totals"]["seeds"] = 4 + len(document["deviating_seeds"])
    document["replay"] = {
        **REPLAY,
        "mended": [worse], "deviating_seeds": [worse["seed_id"], waiting["seed_id"]],
        "baseline": "/somewhere/runs/before", "new": [new["seed_id"], worse["seed_id"]],
    }  # fmt: skip
    suite = suite_of(document)
    assert set(failures(suite)) == seeds(new, worse)
    assert suite.attrib["failures"] == "2"
    assert skipped(suite) == seeds(waiting)
    said = properties(suite)
    assert said["baseline run"] == "before"
    listed = set(said["baseline known deviations"].split(", "))
    assert seeds(known) <= listed
    assert not seeds(new) & listed
    document["replay"]["new"] = []
    assert not failures(suite_of(document))


def test_a_seed_of_any_number_that_fails_is_a_case_that_fails(document: Document) -> None:
    """Seeds that `--limit` drew of many have ids beyond how many they are."""
    for entry in document["findings"]:
        entry["seed_id"] += 1000
    suite = suite_of(document)
    failing = set(failures(suite))
    counting = {f"seed {entry.seed_id}" for entry in counted(from_json(document))}
    assert failing == counting
    assert suite.attrib["failures"] == str(len(counting))
    assert suite.attrib["tests"] == str(document["totals"]["seeds"])
