"""`edgeflare explain`: where it looks for the models, and what is left of it when it is stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from edgeflare.diagnose import explain_document
from edgeflare.record.atomic_file import write_atomically
from interrupted_commands import started

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

DEADLINE_SECONDS = 300.0


def explained(run: Path) -> dict[str, Any]:
    """What explain.json holds, which is valid at any time."""
    written: dict[str, Any] = json.loads((run / "explain.json").read_bytes())
    schema = Path(explain_document.__file__).with_name("explain.schema.json").read_bytes()
    jsonschema.Draft202012Validator(json.loads(schema)).validate(written)
    return written


def found(run: Path) -> list[str]:
    """The seeds of what is explained."""
    document = json.loads((run / "run.json").read_bytes())
    keys = ("findings", "deviating_seeds", "flaky", "unverified")
    return sorted(str(entry["seed_id"]) for key in keys for entry in document[key])


@pytest.fixture(scope="module")
def searched(example: Path, call: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("searched") / "run"
    options = ("--first", "3", "--max-queries", "150", "--shrink", "0", "--fail-on", "none")
    assert call("search", example, *options, "--out", run).code == 0
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
def all_explained(
    searched: Path, call: Call, tmp_path_factory: pytest.TempPathFactory
) -> Explained:
    run = shutil.copytree(searched, tmp_path_factory.mktemp("explained") / "run")
    return Explained(run, call("explain", run))


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
def moved_away(
    example: Path, call: Call, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("moved")
    pair, run, now = folder / "pair", folder / "run", folder / "now"
    shutil.copytree(example, pair, ignore=shutil.ignore_patterns("*.py"))
    options = ("--first", "1", "--max-queries", "150", "--shrink", "0", "--fail-on", "none")
    assert call("search", pair, *options, "--out", run).code == 0
    pair.rename(now)
    return run, now


@pytest.fixture
def moved(moved_away: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A run, and the folder that its models were moved to since."""
    run, now = moved_away
    return Path(shutil.copytree(run, tmp_path / "run")), now


@pytest.mark.parametrize("command", ["explain", "export"])
def test_models_that_were_moved_are_named(
    moved: tuple[Path, Path], call: Call, command: str
) -> None:
    run, now = moved
    chosen = found(run)[0]
    gone = call(command, run, chosen)
    assert gone.code == 2
    assert "put it back, or say where it is with --original or --compressed" in gone.complaint()
    half = call(command, run, chosen, "--original", now / "original.tflite")
    assert half.code == 2
    assert "compressed.tflite cannot be read" in half.complaint()
    both = ("--original", now / "original.tflite", "--compressed", now / "compressed.tflite")
    assert call(command, run, chosen, *both).code == 0


@pytest.mark.parametrize("command", ["explain", "export"])
@pytest.mark.parametrize("model", ["original", "compressed"])
def test_a_moved_model_has_to_be_the_one_that_it_was(
    moved: tuple[Path, Path], biased: Path, call: Call, command: str, model: str
) -> None:
    run, now = moved
    files = {name: now / f"{name}.tflite" for name in ("original", "compressed")} | {model: biased}
    named = [word for name, file in files.items() for word in (f"--{name}", file)]
    said = call(command, run, found(run)[0], *named)
    assert said.code == 2
    assert said.complaint() == (
        f"{biased} is not the {model} model of {run} (its sha256 is another): put that file back,"
        f" or say where it is with --{model}"
    )
    assert not (run / "explain.json").exists()


def test_a_stored_image_that_was_replaced_is_refused(run: Path, call: Call) -> None:
    image, other, *_ = sorted((run / "findings").iterdir())
    image.write_bytes(other.read_bytes())
    said = call("explain", run, image.name)
    assert said.code == 2
    assert f"{image} is not what was stored there" in said.complaint()
    assert not (run / "explain.json").exists()
    assert call("explain", run, other.name).code == 0


def test_of_all_findings_one_with_a_damaged_image_is_left_out(run: Path, call: Call) -> None:
    image, *_ = sorted((run / "findings").iterdir())
    image.write_bytes(image.read_bytes()[:40])
    said = call("explain", run)
    assert said.code == 0
    warning, *progress = said.err.splitlines()
    assert warning == (
        f"warning: {image} is not what was stored there: its sha256 is another;"
        " its finding is left out"
    )
    assert progress[-1] == "explain 2/2"
    assert "explained before" not in said.out
    assert sorted(explained(run)["findings"]) == found(run)[1:]


def test_a_file_in_the_place_of_the_pictures_is_named(run: Path, call: Call) -> None:
    (run / "explain").write_text("")
    said = call("explain", run, found(run)[0])
    assert said.code == 2
    assert said.complaint() == (
        f"{run / 'explain'} is a file, where the pictures would be: move it away"
    )


def test_a_damaged_file_is_said_once_and_made_again(run: Path, call: Call) -> None:
    document = json.loads((run / "run.json").read_bytes())
    document["findings"] = document["findings"][:1]
    (run / "run.json").write_text(json.dumps(document))
    write_atomically(run / "explain.json", b'{"schema": "edgeflare.explain/v1"')
    warning = (
        f"warning: {run / 'explain.json'} is damaged: Expecting ',' delimiter: line 1 column 34"
        f" (char 33); make it again with `edgeflare explain {run}`\n"
    )
    for command in (("report", run, "--html"), ("export", run, found(run)[0])):
        said = call(*command)
        assert (said.code, said.err) == (0, warning)
    said = call("explain", run)
    assert said.code == 0
    assert said.err.startswith(warning)
    assert sorted(explained(run)["findings"]) == found(run)
    for command in (("report", run, "--html"), ("export", run, found(run)[0])):
        assert call(*command).err == ""


def test_an_entry_that_is_damaged_is_said_too(complete: Path, call: Call) -> None:
    chosen = found(complete)[0]
    written = explained(complete)
    del written["findings"][chosen]["verdict"]
    (complete / "explain.json").write_text(json.dumps(written))
    for command in (("report", complete, "--html"), ("export", complete, chosen)):
        said = call(*command)
        assert said.code == 0
        assert f"findings.{chosen} has no verdict; make it again" in said.err


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
            assert f"{layer['operator']} {layer['name']}" in text


def test_without_the_extra_there_is_a_plot_of_text(
    run: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "edgeflare.report.divergence_picture", raising=False)
    said = call("explain", run, found(run)[0])
    assert said.code == 0
    assert not (run / "explain").exists()
    plot = said.out[said.out.index("Divergence along the network") :]
    assert "█" in plot
    assert "10 SOFTMAX" in plot


def test_pictures_go_with_the_run_that_they_are_of(run: Path, example: Path, call: Call) -> None:
    write_atomically(run / "explain" / "000000.svg", b"<svg/>")
    options = (
        *("--first", "1", "--max-queries", "20"),
        *("--shrink", "0", "--fail-on", "none", "--overwrite"),
    )
    assert call("search", example, *options, "--out", run).code == 0
    assert not (run / "explain").exists()


def put_it(folder: Path, milliseconds: int) -> None:
    """Make a device that far away."""
    (folder / "device_profiles").mkdir(exist_ok=True)
    far = f'extends = "emulated-builtin"\nlink_delay_ms = {milliseconds}\n'
    (folder / "device_profiles" / "far.toml").write_text(far)


@contextmanager
def slowly(run: Path, folder: Path, *names: str) -> Iterator[subprocess.Popen[str]]:
    """An explanation, of all findings or some, on a device so far away that it can be stopped."""
    put_it(folder, milliseconds=80)
    with started("explain", str(run), *names, "--device", "far", cwd=folder) as process:
        yield process


def await_the_first(run: Path) -> None:
    """Wait until a finding was explained."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not any((run / "explain").glob("*.svg")):
        assert time.monotonic() < deadline, "nothing was explained"
        time.sleep(0.02)


@pytest.mark.parametrize(("how", "word"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_stopped_it_keeps_what_is_explained(
    run: Path, call: Call, tmp_path: Path, how: signal.Signals, word: str
) -> None:
    with slowly(run, tmp_path) as process:
        await_the_first(run)
        process.send_signal(how)
        out, err = process.communicate(timeout=DEADLINE_SECONDS)

    assert process.returncode == 130, err
    assert "Traceback" not in err
    stopped = explained(run)
    done, left = sorted(stopped["findings"]), sorted(map(str, stopped["pending"]["seed_ids"]))
    assert done
    assert left
    assert sorted(done + left) == found(run)
    assert err.splitlines()[-1] == (
        f"edgeflare: stopped by {word}: {len(done)} of {len(done + left)} findings are explained in"
        f" {run / 'explain.json'}; the same command goes on"
    )
    assert "Verdicts" in out
    assert call("report", run, "--html").err == ""


def test_the_same_command_goes_on_with_what_is_left(complete: Path, call: Call) -> None:
    *done, left = found(complete)
    forget(complete, left)
    stopped = explained(complete)

    said = call("explain", complete)

    assert said.code == 0, said.err
    assert f"{len(done)} more were explained before, and are there too." in said.out
    assert said.err.splitlines()[0].startswith(f"explain {len(done)}/{len(done) + 1}")
    whole = explained(complete)
    assert sorted(whole["findings"]) == found(complete)
    assert whole["pending"]["seed_ids"] == []
    assert {seed_id: whole["findings"][seed_id] for seed_id in done} == stopped["findings"]


def test_a_device_that_is_lost_leaves_what_was_explained(run: Path, tmp_path: Path) -> None:
    with slowly(run, tmp_path) as process:
        await_the_first(run)
        for agent in _children(os.getpid(), "edgeflare_agent"):
            with suppress(ProcessLookupError):  # its fork server ends with it
                os.kill(agent, signal.SIGKILL)
        _, err = process.communicate(timeout=DEADLINE_SECONDS)

    assert process.returncode == 3, err
    last = err.splitlines()[-1]
    assert last.startswith("edgeflare: far")
    assert last.endswith(f"are explained in {run / 'explain.json'}; the same command goes on")
    kept = explained(run)
    assert kept["findings"]
    assert kept["pending"] == {
        "device": "far",
        "seed_ids": [int(one) for one in found(run) if one not in kept["findings"]],
    }


def test_stopped_with_findings_named_it_names_those_that_are_left(
    run: Path, tmp_path: Path
) -> None:
    names = found(run)[1:]
    with slowly(run, tmp_path, *names) as process:
        await_the_first(run)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_SECONDS)

    assert process.returncode == 130
    kept = explained(run)
    assert kept["pending"]["seed_ids"] == []
    left = " ".join(name for name in names if name not in kept["findings"])
    assert err.splitlines()[-1].endswith(
        f"; the same command with those that are left goes on: {left}"
    )


def test_a_finding_that_is_named_is_explained_whatever_is_left_over(
    complete: Path, call: Call
) -> None:
    first, second, third = found(complete)
    assert explained(complete)["pending"]["seed_ids"] == []
    forget(complete, second, third)

    assert call("explain", complete, second).code == 0

    assert explained(complete)["pending"]["seed_ids"] == [int(third)]
    assert sorted(explained(complete)["findings"]) == [first, second]


def test_without_anything_left_all_is_explained_again(complete: Path, call: Call) -> None:
    assert "more were explained before" not in call("explain", complete).out
    assert sorted(explained(complete)["findings"]) == found(complete)


def _children(process: int, word: str) -> list[int]:
    """Processes below one, whose command line has a word."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            parents[int(entry.name)] = (int(stat.rpartition(")")[2].split()[1]), line)
    below, found = {process}, []
    for _ in range(4):
        below |= {pid for pid, (parent, _) in parents.items() if parent in below}
    for pid in below - {process}:
        if word in parents[pid][1]:
            found.append(pid)
    return found
