"""A past run as replay and export take it, and leave nothing outside of their folder."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from documents import run_device, run_document, run_host, run_pair
from edgeflare.core.goal import Goal
from edgeflare.core.seeds import Seeds
from edgeflare.diagnose.compression_error import CompressionError, coarse_layer
from edgeflare.diagnose.layer_difference import KernelOnset, LayerName
from edgeflare.diagnose.verdict import Name, Verdict
from edgeflare.errors import UserError
from edgeflare.replay import past_run, replay_run, reproduction_archive
from edgeflare.replay.failing_operator import where_it_begins
from edgeflare.replay.past_run import PastRun, finding_number
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import SeedIds
from explained_findings import explained
from image_interfaces import image_interface

ABOUT = RunHeader(
    version="test",
    pair=run_pair(fingerprint="0"),
    plan=Plan("boundary", Goal(), ("board",)),
    devices=(run_device(),),
    arms={},
    classes=(),
    labels=(0,),
    host=run_host(),
    all_seeds=SeedIds.first(1),
)


def test_a_finding_of_no_seed_of_the_run_is_damage_of_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunJournal.create(tmp_path / "run.db", ABOUT.to_json()).close()
    document = run_document(findings=[{"seed_id": 1}])
    monkeypatch.setattr(past_run, "load_document", lambda _: document)
    with pytest.raises(
        UserError, match=r"run\.json is damaged: findings\[0\]\.seed_id is 1, which"
    ):
        PastRun.open(tmp_path)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("7", 7),
        ("8", 8),  # whether there is one, who asks says
        ("findings/000007.tokens.json", 7),
        ("runs/first/seeds/000007.tokens.json", 7),
        ("7.5", None),
        ("000007.png", None),
        ("9" * 5000, None),
        ("first", None),
    ],
)
def test_a_finding_is_named_by_its_number_or_by_its_file(name: str, number: int | None) -> None:
    assert finding_number(name, {7: "findings/000007.tokens.json"}) == number


@pytest.mark.parametrize(
    ("size", "what"), [(2**32 + 1, "has 4,294,967,297 bytes"), (0, "is empty")]
)
def test_a_recorded_model_is_no_larger_than_any_that_is_read(
    tmp_path: Path, size: int, what: str
) -> None:
    compressed = tmp_path / "compressed.tflite"
    with compressed.open("wb") as file:
        file.truncate(size)
    interface = msgspec.to_builtins(image_interface().described())
    said = run_pair(compressed=str(compressed), **interface)
    past = PastRun(
        RunDirectory(tmp_path), run_document(), replace(ABOUT, pair=said), searched=frozenset()
    )
    with pytest.raises(UserError, match=f"{what}.* say where that is with --compressed"):
        past.pair()


def copy(name: str, run: Path) -> None:
    """Copy a file of that name from a past run."""
    past: Any = SimpleNamespace(
        suite=[{}], files=lambda _: {name: b"theirs"}, directory=RunDirectory(run.parent / "past")
    )
    seeds = Seeds(np.empty(0), None, ())
    journal = RunJournal.create(run / "run.db", {})
    replay_run._copy_inputs(past, seeds, RunDirectory(run), journal)


@pytest.mark.parametrize(
    "name", ["run.db", "run.json", "../outside.png", "findings/../../outside.png", "other/1.png"]
)
def test_a_replay_takes_images_only(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(UserError, match="names"):
        copy(name, run)
    assert not (tmp_path / "outside.png").exists()
    assert [path.name for path in run.iterdir() if path.suffix != ".lock"] == ["run.db"]


def test_a_replay_writes_through_no_link(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    elsewhere.mkdir()
    (run / "findings").symlink_to(elsewhere)
    with pytest.raises(UserError, match="outside of it"):
        copy("findings/1.png", run)
    assert not list(elsewhere.iterdir())


def test_what_the_script_prints_commands_no_terminal() -> None:
    crafted = dict.fromkeys(("machine", "runtime", "runtime_version"), "board\x1b[2J")
    device = run_device("\x1b[1m", **crafted, delegate="\x1b]0;title\x07")
    said = reproduction_archive._place(device)
    assert said.isprintable()
    assert "board" in said


CONV = LayerName(0, "CONV_2D", "conv")
DENSE = LayerName(7, "FULLY_CONNECTED", "dense")
SOFTMAX = LayerName(10, "SOFTMAX", "probabilities")
PARTING = KernelOnset("capture", CONV, first=True, most=SOFTMAX)
LOSS = CompressionError(CONV, DENSE)
COARSE = replace(
    LOSS,
    most=None,
    coarse=(
        coarse_layer(LayerName(-1, "INPUT", "image"), "output", "saturated", "so it is", 0.6),
        coarse_layer(DENSE, "weights", "range-too-wide", "so it is", 0.3),
    ),
)


def begins(name: Name, onset: KernelOnset = PARTING, loss: CompressionError = LOSS) -> Any:
    """The place and name of the operator, and what begins there."""
    found = where_it_begins(explained(Verdict(name, "so it is"), onset, loss))
    return None if found is None else (found.operator_index, found.name, found.tensor, found.what)


@pytest.mark.parametrize("verdict", ["kernel", "several", "host-suspect"])
def test_it_is_where_device_and_twin_part_not_where_most_is_new(verdict: Name) -> None:
    assert begins(verdict) == (*astuple(CONV), "device and twin part here")


def test_an_onset_before_which_not_all_was_seen_is_said_to_be_that() -> None:
    found = begins("kernel", replace(PARTING, first=False))
    assert found == (*astuple(CONV), "device and twin part here, or earlier")


def test_of_compression_it_is_the_layer_that_took_most_of_the_margin() -> None:
    what = "twin and original part here, by more than quantization explains"
    assert begins("compression") == (*astuple(DENSE), what)


def test_of_coarse_layers_it_is_the_first_that_is_an_operator() -> None:
    what = "twin and original part here, range too wide"
    assert begins("compression", loss=COARSE) == (*astuple(DENSE), what)


def test_where_none_is_named_there_is_none() -> None:
    assert begins("kernel", replace(PARTING, onset=None)) is None
    assert begins("compression", loss=replace(LOSS, most=None)) is None
