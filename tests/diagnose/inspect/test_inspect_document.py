"""The document of an inspection keeps to its schema, and the terminal says the same."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from rich.console import Console

from edgeflare.diagnose.inspect import inspect_document as module
from edgeflare.diagnose.inspect.inspect_document import (
    InspectDocument,
    inspect_bytes,
    inspect_document,
    load_inspection,
)
from edgeflare.diagnose.inspect.inspection import Inspection
from edgeflare.diagnose.inspect.inspection_result import InspectionResult
from edgeflare.diagnose.inspect.inspection_terminal import print_inspection
from edgeflare.errors import UserError
from inspected_units import HYPOTHESES, inputs, network

pytestmark = pytest.mark.slow

LAYERS = network(16, 32)


def found(*behaviours: str) -> InspectionResult:
    inspection = Inspection(LAYERS, HYPOTHESES, 0.05, np.random.default_rng(0), permutations=50)
    rng = np.random.default_rng(1)
    inspection.add(inputs(LAYERS, 600, rng, fault=(0, 3, 0.5), behaviours=behaviours))
    return inspection.result()


def checked(result: InspectionResult, folder: Path) -> InspectDocument:
    document = inspect_document(result)
    schema = Path(module.__file__).with_name("inspect.schema.json")
    jsonschema.validate(document, json.loads(schema.read_bytes()))
    path = folder / module.INSPECTION
    path.write_bytes(inspect_bytes(document))
    assert load_inspection(path) == document
    return document


def test_a_document_has_all_that_was_found(tmp_path: Path) -> None:
    document = checked(found("error", "error-gradient"), tmp_path)
    assert document["verdict"]["name"] == "channel"
    assert document["verdict"]["unit"] == {"layer": 0, "channel": 3}
    assert len(document["best"]) == 2 * 5 * 6
    assert [layer["channels"] for layer in document["layers"]] == [16, 32]
    assert {name: len(units) for name, units in document["top_units"].items()} == {
        "error": 20, "error-gradient": 20, "share": 20,
    }  # fmt: skip


def test_one_without_gradients_is_valid_too(tmp_path: Path) -> None:
    assert checked(found("error"), tmp_path)["verdict"]["unit"] is None


def test_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "inspect.json"
    path.write_text(json.dumps({"schema": "edgeflare.inspect/v1"}))
    with pytest.raises(UserError, match=r"inspect\.json is "):
        load_inspection(path)


def test_the_terminal_begins_with_the_verdict_and_says_nothing_of_what_is_below() -> None:
    result, file = found("error", "error-gradient"), io.StringIO()
    print_inspection(Console(file=file, width=150), result, "inspect.json")
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("channel 3 of CONV_2D (operator 0) has ")
    (contrast, again) = [line for line in lines if line.lstrip().startswith("contrast")]
    assert contrast.split()[1:] == again.split()[1:] == ["nothing"] * 5
    assert any(line.lstrip().startswith("3 ") and "%" in line for line in lines)
    assert lines[-1] == "Everything is in inspect.json."
