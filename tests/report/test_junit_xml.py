"""JUnit XML: valid, a case for each seed, and the failures are what was found."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from documents import REPLAY, Document
from edgeflare.report.junit_xml import junit_xml
from edgeflare.run.run_document import from_json

HERE = Path(__file__).parent
JENKINS = xmlschema.XMLSchema(HERE / "junit-10.xsd")
"""What the xUnit plugin of Jenkins holds files to."""
SCHEMA = xmlschema.XMLSchema(HERE / "junit.xsd")
"""Our own, which is stricter: what a test case must have for any reader to show it."""


@pytest.fixture
def document(run: Any) -> Document:
    copy: Document = deepcopy(run.document)
    copy["classes"] = ["ant", "<bee>", 'c"at']
    return copy


def suite_of(document: Document) -> ElementTree.Element:
    """The one suite, once the whole is valid."""
    data = junit_xml(from_json(document))
    JENKINS.validate(data.decode())
    SCHEMA.validate(data.decode())
    suite = ElementTree.fromstring(data).find("testsuite")  # noqa: S314 - ours
    assert suite is not None
    return suite


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


def test_each_seed_is_a_case_and_what_deviates_fails(document: Document) -> None:
    suite = suite_of(document)
    names = [case.attrib["name"] for case in suite.iter("testcase")]
    assert names == [f"seed {seed_id}" for seed_id in range(document["totals"]["seeds"])]
    found = [*document["findings"], *document["deviating_seeds"]]
    assert set(failures(suite)) == {f"seed {entry['seed_id']}" for entry in found}
    assert suite.attrib["tests"] == str(len(names))
    assert suite.attrib["failures"] == str(len(found))
    assert suite.attrib["skipped"] == "0"


def test_a_failure_says_who_decided_what_and_where_the_input_is(document: Document) -> None:
    entry = document["findings"][0]
    entry |= {"labels": {"original": 0, "twin": 1, "device": 1}, "cause": "compression"}
    entry["strength"] = 0.25
    failure = failures(suite_of(document))[f"seed {entry['seed_id']}"]
    assert failure.attrib == {
        "message": "compression: original: ant; twin, device: <bee> (strength 0.2500)",
        "type": "compression",
    }
    assert failure.text is not None
    for detail in (entry["image"], entry["sha256"], entry["seed_image"], *entry["operators"]):
        assert detail in failure.text


def test_a_seed_that_deviates_itself_says_so(document: Document) -> None:
    entry = document["deviating_seeds"][0]
    failure = failures(suite_of(document))[f"seed {entry['seed_id']}"]
    assert failure.attrib["message"].startswith(f"the seed itself deviates, {entry['cause']}: ")


def test_a_crash_is_a_failure_of_its_own_type(document: Document) -> None:
    entry = document["findings"][0]
    entry |= {"kind": "crash", "strength": None}
    entry["labels"]["device"] = None
    failure = failures(suite_of(document))[f"seed {entry['seed_id']}"]
    assert failure.attrib["type"] == "crash"
    assert "device: crash (strength –)" in failure.attrib["message"]


def test_what_a_stopped_run_did_not_decide_is_skipped(document: Document) -> None:
    first, second, *rest = document["findings"]
    document |= {"findings": rest, "unverified": [first], "flaky": [second]}
    document["totals"]["searched"] -= 1
    document["stopped_by"] = "interrupt"
    suite = suite_of(document)
    assert f"seed {first['seed_id']}" in skipped(suite)
    assert f"seed {second['seed_id']}" not in skipped(suite) | set(failures(suite))
    assert len(skipped(suite)) == int(suite.attrib["skipped"]) > 1
    assert not skipped(suite) & set(failures(suite))


def test_it_says_what_ran_where(document: Document) -> None:
    suite = suite_of(document)
    said = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert said["pair name"] == "laboratory"
    assert said["plan strategy"] == document["strategy"]
    name = document["devices"][0]["name"]
    assert said[f"device {name} machine"] == "laboratory"


PHASES = ("setup_seconds", "wall_seconds", "refine_seconds", "verify_seconds")


def test_the_times_are_those_of_the_run(document: Document) -> None:
    suite = suite_of(document)
    whole = sum(document["totals"][phase] for phase in PHASES)
    assert float(suite.attrib["time"]) == pytest.approx(whole, abs=1e-3)
    by_name = {case.attrib["name"]: case for case in suite.iter("testcase")}
    for entry in document["findings"]:
        case = by_name[f"seed {entry['seed_id']}"]
        assert float(case.attrib["time"]) == pytest.approx(entry["seconds"], abs=1e-3)


def test_jenkins_takes_long_and_short_times(document: Document) -> None:
    for seconds in (0.0, 4e-7, 0.1234567, 59.9996, 1e6 / 3):
        document["totals"] |= dict.fromkeys(PHASES, 0.0) | {"wall_seconds": seconds}
        assert float(suite_of(document).attrib["time"]) == pytest.approx(seconds, abs=1e-3)


def test_a_run_that_found_nothing_passes(document: Document) -> None:
    suite = suite_of({**document, "findings": [], "deviating_seeds": []})
    assert not failures(suite)
    assert suite.attrib["failures"] == "0"


@pytest.mark.slow
@given(st.text(st.characters(), min_size=1), st.text(st.characters()))
def test_any_name_gives_valid_xml(run: Any, name: str, pair: str) -> None:
    document: Document = deepcopy(run.document)
    document["classes"] = [name] * 3
    document["pair"]["name"] = pair
    suite = suite_of(document)
    assert failures(suite)


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
        SCHEMA.validate(broken.decode())


def test_the_cases_of_a_replay_are_what_it_tried(document: Document) -> None:
    mended, worse, unstable, waiting, *still = document["findings"]
    ids = [entry["seed_id"] for entry in (*document["findings"], *document["deviating_seeds"])]
    assert ids != list(range(len(ids)))
    document |= {"findings": still, "flaky": [unstable], "unverified": [waiting]}
    document["replay"] = {
        **REPLAY,
        "mended": [mended, worse], "deviating_seeds": [worse["seed_id"]],
        "baseline": None, "new": [],
    }  # fmt: skip
    document["totals"]["seeds"] = len(ids)
    suite = suite_of(document)
    names = [case.attrib["name"] for case in suite.iter("testcase")]
    assert names == [f"seed {seed_id}" for seed_id in sorted(ids)]
    failed = failures(suite)
    passed = set(names) - set(failed) - skipped(suite)
    assert passed == {f"seed {mended['seed_id']}"}
    assert skipped(suite) == {f"seed {waiting['seed_id']}"}
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
    assert set(failures(suite)) == {f"seed {new['seed_id']}", f"seed {worse['seed_id']}"}
    assert suite.attrib["failures"] == "2"
    assert skipped(suite) == {f"seed {waiting['seed_id']}"}
    said = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert said["baseline run"] == "before"
    listed = said["baseline known deviations"].split(", ")
    assert f"seed {known['seed_id']}" in listed
    assert f"seed {new['seed_id']}" not in listed
    document["replay"]["new"] = []
    assert not failures(suite_of(document))
