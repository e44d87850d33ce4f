"""The canonical document: it keeps its schema, adds up, and says what the files say."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from copy import deepcopy
from importlib.resources import files
from pathlib import Path
from statistics import fmean, median
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest

from documents import LISTS, as_json
from edgeflare.errors import UserError
from edgeflare.report.figure_lines import who_was_right
from edgeflare.run.derive_document import derive_document
from edgeflare.run.harm import rank
from edgeflare.run.journal import Journal
from edgeflare.run.load_document import load_document
from edgeflare.run.nearness import counts, nearness_db
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument, from_json


@pytest.fixture(scope="session")
def schema() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)
    return jsonschema.Draft202012Validator(PUBLISHED)


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
    told = [entry["seed_id"] for key in LISTS for entry in document[key]]
    assert len(told) == len(set(told))  # no seed twice


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


def test_a_folder_without_a_document_or_with_another_is_refused(run: Any, tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    with pytest.raises(UserError, match="no run directory"):
        load_document(directory)
    lacking = {key: value for key, value in run.document.items() if key not in ("find", "flaky")}
    for content, said in (
        ([], r"is not of the schema edgeflare\.run/v1"),
        ({"schema": "edgeflare.run/v9"}, r"is not of the schema edgeflare\.run/v1"),
        (lacking, r"run\.json is damaged: it has no find, flaky$"),
    ):
        directory.document.write_text(json.dumps(content))
        with pytest.raises(UserError, match=said):
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
    assert (near["measure"], near["curve"]) == ("SNR", [0.0, 50.0])
    assert [one["at_least"] for one in near["db"]] == [10.0, 15.0, 20.0, 25.0, 30.0, 40.0]
    known = [value for one in document.deviations if (value := nearness_db(one)) is not None]
    for one in near["db"]:
        assert one["seeds"] == sum(value >= one["at_least"] for value in known)


def test_a_journal_alone_says_the_same_also_where_it_is_older_and_notes_no_nearness(
    run: Any, tmp_path: Path
) -> None:
    directory = crafted(run, tmp_path, "warnings", [])
    assert as_json(load_document(directory)) == run.document
    directory.document.unlink(missing_ok=True)
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


Schema = Mapping[str, Any]
PUBLISHED: Schema = json.loads((files("edgeflare.run") / "run.schema.json").read_bytes())
TYPED: Schema = msgspec.json.schema(RunDocument)


def resolved(part: Schema, whole: Schema) -> Schema:
    """A part of a schema, with what it refers to in its place."""
    if "$ref" not in part:
        return part
    found: Any = whole
    for key in part["$ref"].removeprefix("#/").split("/"):
        found = found[key]
    return resolved(found, whole)


def alternatives(part: Schema, whole: Schema) -> list[Schema]:
    part = resolved(part, whole)
    return [resolved(one, whole) for one in part.get("anyOf", [part])]


def kinds(part: Schema, whole: Schema) -> set[str]:
    """The types of JSON that a schema allows; those of none are all."""
    found: set[str] = set()
    for one in alternatives(part, whole):
        values = one.get("enum", [one["const"]] if "const" in one else [])
        if values:
            found |= {"null" if value is None else "string" for value in values}
        else:
            told = one.get("type", [])
            found |= {told} if isinstance(told, str) else set(told)
    return found - {"integer"} if "number" in found else found


def of_kind(part: Schema, kind: str, whole: Schema) -> Schema:
    """What a schema says of values of one type."""
    return next(one for one in alternatives(part, whole) if kind in kinds(one, whole))


def differences(published: Schema, typed: Schema, place: str = "run") -> Iterator[str]:
    """Yield where the two do not say the same; a map whose values are anything is not gone into."""
    allowed, held = kinds(published, PUBLISHED), kinds(typed, TYPED)
    if allowed != held:
        yield f"{place}: {sorted(allowed)} published, {sorted(held)} typed"
    elif "array" in held:
        one, other = of_kind(published, "array", PUBLISHED), of_kind(typed, "array", TYPED)
        yield from differences(one["items"], other["items"], f"{place}[]")
    elif len(held_forms := _objects(typed, TYPED)) > 1:
        published_forms = _objects(published, PUBLISHED)
        if published_forms.keys() != held_forms.keys():
            yield f"{place}: forms {sorted(published_forms)} and {sorted(held_forms)}"
        for form in published_forms.keys() & held_forms.keys():
            yield from _of_objects(published_forms[form], held_forms[form], f"{place}.{form}")
    elif "object" in held:
        one, other = of_kind(published, "object", PUBLISHED), of_kind(typed, "object", TYPED)
        if "properties" in other:
            yield from _of_objects(one, other, place)
        elif isinstance(other.get("additionalProperties"), Mapping):
            yield from _of_maps(one, other["additionalProperties"], place)


def _objects(part: Schema, whole: Schema) -> dict[str, Schema]:
    """The objects that may stand in one place, by the constant that tells them apart."""
    found = [one for one in alternatives(part, whole) if "object" in kinds(one, whole)]
    if len(found) < 2:
        return {str(n): one for n, one in enumerate(found)}
    tags = [one["properties"]["form"] for one in found]
    forms = [tag.get("const") or tag["enum"][0] for tag in tags]
    return dict(zip(forms, found, strict=True))


def _of_objects(published: Schema, typed: Schema, place: str) -> Iterator[str]:
    keys, fields = published["properties"], typed["properties"]
    for key in keys.keys() ^ fields.keys():
        yield f"{place}.{key} is only {'published' if key in keys else 'typed'}"
    required = set(published.get("required", ())) ^ set(typed.get("required", ()))
    for key in required:
        yield f"{place}.{key} is required by one of them"
    if published.get("additionalProperties") is not False:
        yield f"{place} may have further keys, which its type has not"
    for key in keys.keys() & fields.keys():
        told = fields[key]
        optional = "default" in told and "null" not in kinds(keys[key], PUBLISHED)
        if optional:  # None stands for a key that is absent
            told = {"anyOf": [one for one in told["anyOf"] if one.get("type") != "null"]}
        yield from differences(keys[key], told, f"{place}.{key}")


def _of_maps(published: Schema, values: Schema, place: str) -> Iterator[str]:
    """Yield how the values of a map differ, whose keys the schema may name."""
    named = list(published.get("properties", {}).items())
    if isinstance(published.get("additionalProperties"), Mapping):
        named.append(("*", published["additionalProperties"]))
    for key, part in named:
        yield from differences(part, values, f"{place}.{key}")


def test_the_types_are_those_of_the_schema() -> None:
    assert list(differences(PUBLISHED, TYPED)) == []


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (("properties", "totals", "properties", "seeds"), {"type": "string"}),
        (("$defs", "finding"), {"required": ["seed_id"]}),
        (("$defs", "answer", "anyOf", 0, "properties", "form"), {"const": "other"}),
        (("$defs", "readings", "additionalProperties", "properties", "min"), {"type": "null"}),
    ],
)
def test_a_schema_that_says_otherwise_is_noticed(
    place: tuple[Any, ...], change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = json.loads(json.dumps(PUBLISHED))
    at = changed
    for key in place:
        at = at[key]
    at |= change
    monkeypatch.setitem(globals(), "PUBLISHED", changed)
    assert list(differences(changed, TYPED))
