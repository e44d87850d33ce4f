"""`edgeflare explain`: where it looks for the models, and what is left of it when it is stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from called_commands import EXAMPLE, call_here, completed, document_of, drawn_figures, refused
from edgeflare.cli import explain
from edgeflare.record.atomic_file import write_atomically
from processes import agents, kill

pytestmark = pytest.mark.slow


def explained(run: Path) -> dict[str, Any]:
    """What explain.json holds, which is valid at any time."""
    return document_of(run, "explain.json")


def found(run: Path) -> list[str]:
    """The seeds of what is explained."""
    document = document_of(run)
    keys = ("findings", "deviating_seeds", "flaky", "unverified")
    return sorted(str(entry["seed_id"]) for key in keys for entry in document[key])


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("searched") / "run"
    options = ("--first", "3", "--max-queries", "150", "--shrink", "0", "--fail-on", "none")
    completed("search", EXAMPLE, *options, "--out", run)
    assert len(found(run)) == 3
    return run


@pytest.fixture
def run(searched: Path, tmp_path: Path) -> Path:
    """A run with three findings, for the test to write into."""
    return Path(shutil.copytree(searched, tmp_path / "run"))


@dataclass(frozen=True)
class Explained:
    """A run whose findings are all explained, and what was said."""

    folder: Path
    said: Any


@pytest.fixture(scope="module")
def all_explained(searched: Path, tmp_path_factory: pytest.TempPathFactory) -> Explained:
    run = shutil.copytree(searched, tmp_path_factory.mktemp("explained") / "run")
    with drawn_figures():
        return Explained(run, call_here("explain", run))


@pytest.fixture
def complete(all_explained: Explained, tmp_path: Path) -> Path:
    """A run with three findings and their explanations, for the test to write into."""
    return Path(shutil.copytree(all_explained.folder, tmp_path / "complete"))


def forget(run: Path, *seed_ids: str) -> None:
    """Make explanations pending again, as they are when a command was stopped before them."""
    written = explained(run)
    for seed_id in seed_ids:
        del written["findings"][seed_id]
    written["pending"]["seed_ids"] = list(map(int, seed_ids))
    write_atomically(run / "explain.json", json.dumps(written).encode())


@pytest.fixture(scope="module")
def moved_away(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("moved")
    pair, run, now = folder / "pair", folder / "run", folder / "now"
    shutil.copytree(EXAMPLE, pair, ignore=shutil.ignore_patterns("*.py"))
    options = ("--first", "1", "--max-queries", "150", "--shrink", "0", "--fail-on", "none")
    completed("search", pair, *options, "--out", run)
    pair.rename(now)
    return run, now


@pytest.fixture
def moved(moved_away: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A run, and the folder that its models were moved to since."""
    run, now = moved_away
    return Path(shutil.copytree(run, tmp_path / "run")), now


@pytest.mark.parametrize("command", ["explain", "export"])
def test_models_that_were_moved_are_named(moved: tuple[Path, Path], command: str) -> None:
    run, now = moved
    chosen = found(run)[0]
    assert "put it back, or say where it is with --original or --compressed" in refused(
        command, run, chosen
    )
    assert "compressed.tflite cannot be read" in refused(
        command, run, chosen, "--original", now / "original.tflite"
    )
    both = ("--original", now / "original.tflite", "--compressed", now / "compressed.tflite")
    completed(command, run, chosen, *both)


@pytest.mark.parametrize(("command", "model"), [("explain", "original"), ("export", "compressed")])
def test_a_moved_model_has_to_be_the_one_that_it_was(
    moved: tuple[Path, Path], biased: Path, command: str, model: str
) -> None:
    run, now = moved
    files = {name: now / f"{name}.tflite" for name in ("original", "compressed")} | {model: biased}
    named = [word for name, file in files.items() for word in (f"--{name}", file)]
    assert refused(command, run, found(run)[0], *named) == (
        f"{biased} is not the {model} model of {run} (its sha256 is another): put that file back,"
        f" or say where it is with --{model}"
    )
    assert not (run / "explain.json").exists()


def test_a_stored_image_that_was_replaced_is_refused(run: Path) -> None:
    image, other, *_ = sorted((run / "findings").iterdir())
    image.write_bytes(other.read_bytes())
    assert f"{image} is not what was stored there" in refused("explain", run, image.name)
    assert not (run / "explain.json").exists()
    completed("explain", run, other.name)


def test_of_all_findings_one_with_a_damaged_image_is_left_out(run: Path) -> None:
    image, *_ = sorted((run / "findings").iterdir())
    image.write_bytes(image.read_bytes()[:40])
    said = completed("explain", run)
    warning, *progress = said.err.splitlines()
    assert warning == (
        f"warning: {image} is not what was stored there: its sha256 is another;"
        " its finding is left out"
    )
    assert progress[-1] == "explain 2/2"
    assert "explained before" not in said.out
    assert sorted(explained(run)["findings"]) == found(run)[1:]


def test_a_file_in_the_place_of_the_pictures_is_named(run: Path) -> None:
    (run / "explain").write_text("")
    assert refused("explain", run, found(run)[0]) == (
        f"{run / 'explain'} is a file, where the pictures would be: move it away"
    )


def test_a_damaged_file_is_said_once_and_made_again(run: Path) -> None:
    document = document_of(run)
    document["findings"] = document["findings"][:1]
    (run / "run.json").write_text(json.dumps(document))
    write_atomically(run / "explain.json", b'{"schema": "edgeflare.explain/v1"')
    warning = (
        f"warning: {run / 'explain.json'} is damaged: Expecting ',' delimiter: line 1 column 34"
        f" (char 33); make it again with `edgeflare explain {run}`\n"
    )
    for command in (("report", run, "--html"), ("export", run, found(run)[0])):
        said = call_here(*command)
        assert (said.code, said.err) == (0, warning)
    said = completed("explain", run)
    assert said.err.startswith(warning)
    assert sorted(explained(run)["findings"]) == found(run)
    for command in (("report", run, "--html"), ("export", run, found(run)[0])):
        assert call_here(*command).err == ""


def test_an_entry_that_is_damaged_is_said_too(complete: Path) -> None:
    chosen = found(complete)[0]
    written = explained(complete)
    del written["findings"][chosen]["verdict"]
    (complete / "explain.json").write_text(json.dumps(written))
    for command in (("report", complete, "--html"), ("export", complete, chosen)):
        said = completed(*command)
        assert "findings[...] has no verdict; make it again" in said.err


def test_the_layers_are_drawn_beside_it(all_explained: Explained) -> None:
    run, said = all_explained.folder, all_explained.said
    assert said.code == 0
    assert "█" not in said.out
    assert "explain 3/3" in said.err
    for seed_id, finding in explained(run)["findings"].items():
        svg = (run / "explain" / f"{int(seed_id):06d}.svg").read_bytes()
        text = " ".join(ElementTree.fromstring(svg).itertext())  # noqa: S314 - ours
        assert f"seed {seed_id} on emulated-builtin: {finding['verdict']['name']}" in text
        for layer in finding["twin_and_original"]["layers"]:
            assert f"{layer['operator_index']} {layer['name']}" in text


def test_without_the_extra_there_is_a_plot_of_text(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "edgeflare.report.divergence_picture", raising=False)
    said = completed("explain", run, found(run)[0])
    assert not (run / "explain").exists()
    plot = said.out[said.out.index("Divergence along the network") :]
    assert "█" in plot
    assert "10 SOFTMAX" in plot


def test_pictures_go_with_the_run_that_they_are_of(run: Path) -> None:
    write_atomically(run / "explain" / "000000.svg", b"<svg/>")
    options = (
        *("--first", "1", "--max-queries", "20"),
        *("--shrink", "0", "--fail-on", "none", "--overwrite"),
    )
    completed("search", EXAMPLE, *options, "--out", run)
    assert not (run / "explain").exists()


@contextmanager
def once_one_is_explained(act: Callable[[], None]) -> Iterator[None]:
    """Have something happen as soon as the first finding was explained."""

    def drawn(*given: Any) -> None:
        draw(*given)
        patch.undo()
        act()

    draw = explain._draw  # which ends each finding
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explain, "_draw", drawn)
        yield


def test_stopped_it_keeps_what_is_explained(run: Path) -> None:
    with once_one_is_explained(lambda: signal.raise_signal(signal.SIGTERM)):
        said = completed("explain", run, code=130)
    assert "Traceback" not in said.err
    stopped = explained(run)
    (done,), left = stopped["findings"], sorted(map(str, stopped["pending"]["seed_ids"]))
    assert sorted([done, *left]) == found(run)
    assert said.err.splitlines()[-1] == (
        "edgeflare: stopped by SIGTERM: 1 of 3 findings are explained"
        f" in {run / 'explain.json'}; the same command goes on"
    )
    assert "Verdicts" in said.out
    assert call_here("report", run, "--html").err == ""


def test_the_same_command_goes_on_with_what_is_left(complete: Path) -> None:
    *done, left = found(complete)
    forget(complete, left)
    stopped = explained(complete)

    said = completed("explain", complete)

    assert f"{len(done)} more were explained before, and are there too." in said.out
    assert said.err.splitlines()[0].startswith(f"explain {len(done)}/{len(done) + 1}")
    whole = explained(complete)
    assert sorted(whole["findings"]) == found(complete)
    assert whole["pending"]["seed_ids"] == []
    assert {seed_id: whole["findings"][seed_id] for seed_id in done} == stopped["findings"]


@pytest.mark.usefixtures("own_agents")
def test_a_device_that_is_lost_leaves_what_was_explained(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeflare.devices.device.REOPEN_PAUSES_SECONDS", (0.0,))
    with once_one_is_explained(lambda: kill(agents(os.getpid()))):
        said = completed("explain", run, "--device", "emulated-xnnpack", code=3)
    last = said.err.splitlines()[-1]
    assert last.startswith("edgeflare: emulated-xnnpack")
    assert last.endswith(f"are explained in {run / 'explain.json'}; the same command goes on")
    kept = explained(run)
    assert kept["findings"]
    assert kept["pending"] == {
        "device": "emulated-xnnpack",
        "seed_ids": [int(one) for one in found(run) if one not in kept["findings"]],
    }


def test_stopped_with_findings_named_it_names_those_that_are_left(run: Path) -> None:
    names = found(run)[1:]
    with once_one_is_explained(lambda: signal.raise_signal(signal.SIGINT)):
        said = completed("explain", run, *names, code=130)
    kept = explained(run)
    assert kept["pending"]["seed_ids"] == []
    left = " ".join(name for name in names if name not in kept["findings"])
    assert said.err.splitlines()[-1].endswith(
        f"; the same command with those that are left goes on: {left}"
    )


def test_a_finding_that_is_named_is_explained_whatever_is_left_over(complete: Path) -> None:
    first, second, third = found(complete)
    assert explained(complete)["pending"]["seed_ids"] == []
    forget(complete, second, third)

    completed("explain", complete, second)

    assert explained(complete)["pending"]["seed_ids"] == [int(third)]
    assert sorted(explained(complete)["findings"]) == [first, second]


def test_without_anything_left_all_is_explained_again(complete: Path) -> None:
    assert "more were explained before" not in call_here("explain", complete).out
    assert sorted(explained(complete)["findings"]) == found(complete)
