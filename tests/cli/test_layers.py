"""`edgeflare layers` as a command: the table, its page, and what is refused."""

from __future__ import annotations

import csv
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from called_commands import EXAMPLES, call_here
from edgeflare.diagnose.layers import layer_table
from edgeflare.diagnose.layers.layer_comparison import compare_layers
from edgeflare.diagnose.layers.layers_document import load_layers
from edgeflare.errors import InfrastructureError

EXAMPLE = EXAMPLES / "fashion_lenet4"
FEW = ("--limit", "6", "--sensitivity-inputs", "3")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("layers") / "table"
    said = call_here("layers", EXAMPLE, *FEW, "--device", "emulated-builtin", "--out", out)
    assert said.code == 0, said.err
    assert "emulated-builtin computes 7 layers as the twin does, within one step" in " ".join(
        said.out.split()
    )
    assert "Original against twin" in said.out
    return out


@pytest.mark.slow
def test_each_layer_is_seen_on_all_inputs_and_on_the_device(table: Path) -> None:
    document = load_layers(table / "layers.json")
    assert document.device is not None
    assert (document.inputs, document.inputs_requested) == (6, 6)
    assert (document.device.name, document.source) == ("emulated-builtin", "seeds.npz")
    assert document.notes == ("not run by themselves: RESHAPE (operator 7)",)
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
    assert "most sensitive to compression" in (table / "summary.md").read_text()
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


@pytest.fixture
def happens_after(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """What happens after each input that is looked into; nothing where it is empty."""
    happens: list[BaseException | None] = []

    def progress(at: int, _of: int) -> None:
        if at <= len(happens):
            if (what := happens[at - 1]) is None:
                return
            if isinstance(what, KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
            else:
                raise what

    def stepwise(comparison: Any, inputs: Any, _progress: Any, stopped: Any) -> None:
        compare_layers(comparison, inputs, progress, stopped)

    monkeypatch.setattr(layer_table, "compare_layers", stepwise)
    return happens


def test_a_table_that_is_stopped_is_that_of_the_inputs_until_then(
    happens_after: list[BaseException | None], tmp_path: Path
) -> None:
    happens_after += [None, KeyboardInterrupt()]
    assert call_here("layers", EXAMPLE, *FEW, "--out", tmp_path / "out").code == 130
    assert load_layers(tmp_path / "out" / "layers.json").inputs == 2


def test_ctrl_c_ends_the_wait_for_what_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def waiting(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it went on to wait")

    monkeypatch.setattr(layer_table, "open_layers", waiting)
    said = call_here("layers", EXAMPLE, *FEW, "--out", tmp_path / "out")
    assert said.code == 130
    assert "stopped by SIGTERM" in said.err


def test_a_device_that_is_lost_leaves_what_was_seen(
    happens_after: list[BaseException | None], tmp_path: Path
) -> None:
    happens_after += [None, InfrastructureError("the phone is gone")]
    said = call_here("layers", EXAMPLE, *FEW, "--out", tmp_path / "out")
    assert said.code == 3
    assert "the phone is gone" in said.err
    assert load_layers(tmp_path / "out" / "layers.json").inputs == 2


def test_nothing_seen_replaces_no_table(
    table: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nothing(_comparison: Any, _inputs: Any, _progress: Any, _stopped: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(layer_table, "compare_layers", nothing)
    kept = Path(shutil.copytree(table, tmp_path / "kept"))
    before = (kept / "layers.json").read_bytes()
    assert call_here("layers", EXAMPLE, *FEW, "--out", kept, "--overwrite").code == 130
    assert (kept / "layers.json").read_bytes() == before


def test_an_original_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    other = EXAMPLES / "spoken_words" / "original.tflite"
    said = call_here("layers", EXAMPLE, *FEW, "--original", other, "--out", tmp_path / "out")
    assert said.code == 2
    assert len(said.err.splitlines()[-1]) < 1_000
    assert not (tmp_path / "out" / "layers.json").exists()


def test_a_dry_run_says_what_would_be_looked_into(tmp_path: Path) -> None:
    said = call_here("layers", EXAMPLE, *FEW, "--dry-run", "--out", tmp_path / "out")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[0] == "8 layers, 8 of them with one of the original"
    assert lines[1] == "6 inputs of seeds.npz; the sensitivity on 3 of them"
    assert lines[-1].endswith("nothing was written")
    assert not (tmp_path / "out").exists()
