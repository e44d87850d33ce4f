"""`edgeflare layers` as a command: the table, its page, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest

from called_commands import EXAMPLES, call_here
from edgeflare.diagnose.layers.layers_document import load_layers

EXAMPLE = EXAMPLES / "fashion_lenet4"
FEW = ("--limit", "6", "--sensitivity-inputs", "3")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("layers") / "table"
    said = call_here("layers", EXAMPLE, *FEW, "--device", "emulated-builtin", "--out", out)
    assert said.code == 0, said.err
    assert "emulated-builtin computes 8 layers as the twin does" in " ".join(said.out.split())
    assert "Original against twin" in said.out
    return out


def test_each_layer_is_seen_on_all_inputs_and_on_the_device(table: Path) -> None:
    document = load_layers(table / "layers.json")
    assert (document.inputs, document.asked, document.device) == (6, 6, "emulated-builtin")
    assert document.notes == ()
    for one in document.layers:
        assert one.entire is not None
        assert one.entire.inputs == 6
        assert one.device_entire is not None
        assert one.sensitivity is None or one.sensitivity.inputs == 3
    assert not document.wrong_on_device()


def test_a_table_is_reported_in_each_form(table: Path) -> None:
    assert call_here("report", table, "--html", "--csv", "--summary").code == 0
    page = (table / "layers.html").read_text()
    for title in ("Sensitivity of each layer", "Signal to noise behind each layer"):
        assert title in page
    with (table / "layers.csv").open(newline="") as rows:
        names = [row["name"] for row in csv.DictReader(rows)]
    assert names == [one.layer.name for one in load_layers(table / "layers.json").layers]
    assert "most sensitive" in (table / "summary.md").read_text()
    assert msgspec.json.decode(call_here("report", table, "--json").out)["pair"] == EXAMPLE.name


def test_a_pair_without_layers_to_see_is_refused(table: Path, tmp_path: Path) -> None:
    other = ("--original", "somewhere.onnx", "--out", tmp_path / "out")
    said = call_here("layers", EXAMPLE, *FEW, *other)
    assert said.code == 2
    assert not (tmp_path / "out").exists()
    said = call_here("layers", EXAMPLE, *FEW, "--out", table)
    assert said.code == 2
    assert "holds a layer table already: replace it with --overwrite" in said.err
    assert call_here("layers", EXAMPLE, *FEW, "--out", table, "--overwrite").code == 0
    assert load_layers(table / "layers.json").device is None
