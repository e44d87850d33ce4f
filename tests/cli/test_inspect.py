"""`edgeflare inspect`: what it says and writes, and what it refuses without touching the run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from called_commands import EXAMPLE, call_here, completed, document_of

pytest.importorskip("jax", reason="needs the extra whitebox")


pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

ROOT = Path(__file__).parents[2]

BRIEF = ("--behaviour", "error", "--max-inputs", "100", "--precision", ".9")
"""Options that make what is refused late come soon."""


def searched(pair: Path, run: Path, limit: int) -> Path:
    options = ("--max-queries", "20", "--shrink", "0", "--fail-on", "none", "--first", str(limit))
    completed("search", pair, *options, "--out", run)
    return run


@pytest.fixture(scope="module")
def original_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return searched(EXAMPLE, tmp_path_factory.mktemp("searched") / "run", 20)


@pytest.fixture
def run(original_run: Path, tmp_path: Path) -> Path:
    """A run, for the test to write into."""
    return Path(shutil.copytree(original_run, tmp_path / "run"))


@pytest.fixture
def hypotheses(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file with one hypothesis: its name, and what it returns of the input `one`."""

    def written(name: str, returned: str) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(
            "from edgeflare.hypothesis import hypothesis\n\n"
            f"@hypothesis({name!r})\ndef mine(one):\n    return {returned}\n"
        )
        return path

    return written


def contents(run: Path) -> dict[str, bytes]:
    """Return all files of a run."""
    files = [path for path in run.rglob("*") if path.is_file()]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


def test_it_says_a_sentence_and_the_same_again(
    run: Path, hypotheses: Callable[[str, str], Path], tmp_path: Path
) -> None:
    mine = hypotheses("bright left half", "one.input[:, :14].mean() > one.input.mean()")
    options = ("--precision", ".3", "--max-inputs", "240", "--hypotheses", mine)
    said = completed("inspect", run, *options)
    written = document_of(run, "inspect.json")
    assert said.out.splitlines()[0] == written["verdict"]["sentence"]
    assert written["verdict"]["name"] in ("diffuse", "channel", "nothing")
    assert written["hypotheses"][-1] == "bright left half"
    assert written["behaviours"] == ["activation", "error", "error-gradient"]
    assert [layer["operator_index"] for layer in written["layers"]] == [0, 1, 2, 3, 8]
    assert written["inputs"] == 200
    assert written["ended"] == "precise"

    first = (run / "inspect.json").read_bytes()
    quiet = call_here("inspect", run, *options, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, f"{run / 'inspect.json'}\n", "")
    assert (run / "inspect.json").read_bytes() == first

    assert call_here("report", run, "--html").err == ""
    sentence = written["verdict"]["sentence"]
    assert f"{sentence[:1].upper()}{sentence[1:]}." in (run / "report.html").read_text("utf-8")


def test_a_device_captures_what_the_translation_computes(run: Path) -> None:
    brief = ("--behaviour", "error", "--precision", ".9", "--max-inputs", "200")
    completed("inspect", run, *brief)
    here = document_of(run, "inspect.json")
    completed("inspect", run, *brief, "--device", "emulated-xnnpack")
    assert document_of(run, "inspect.json") == here
    assert here["verdict"]["name"] == "none"


@pytest.mark.parametrize("damage", ["{", '{"schema": "edgeflare.inspect/v1"}'])
def test_a_damaged_file_is_one_warning_and_no_section(run: Path, damage: str) -> None:
    (run / "inspect.json").write_text(damage)
    said = completed("report", run, "--html")
    (line,) = said.err.splitlines()
    assert line.startswith(f"warning: {run / 'inspect.json'} is damaged: ")
    assert line.endswith(f"; make it again with `edgeflare inspect {run}`")
    assert "Hidden units" not in (run / "report.html").read_text("utf-8")


def refused(run: Path, *options: object) -> str:
    """Return the one line by which it is refused; nothing in the run is changed by it."""
    before = contents(run)
    said = call_here("inspect", run, *options)
    assert (said.code, said.out) == (2, "")
    assert contents(run) == before
    errors = [line for line in said.err.splitlines() if line.startswith("edgeflare: ")]
    assert len(errors) == 1
    assert said.err.splitlines()[-1] == errors[0]
    return str(errors[0])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--precision", "1"), "precision is 1: give a number above 0 and below 1"),
        (("--behaviour", "eror"), "did you mean 'error'?"),
        (("--hypotheses", "absent.py"), "absent.py"),
        (("--device", "absent"), "absent"),
    ],
)
def test_options_that_cannot_be(original_run: Path, options: tuple[str, ...], line: str) -> None:
    assert line in refused(original_run, *options)


def test_a_hypothesis_that_fails_is_named(
    original_run: Path, hypotheses: Callable[[str, str], Path]
) -> None:
    file = hypotheses("mine", "one.nothing")
    assert "hypothesis 'mine' failed: " in refused(original_run, *BRIEF, "--hypotheses", file)


@pytest.mark.parametrize("package", ["jax", "sklearn"])
def test_without_the_extra_it_is_named(
    original_run: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for name in [one for one in sys.modules if one.startswith("edgeflare.whitebox")]:
        monkeypatch.delitem(sys.modules, name)
    line = refused(original_run)
    assert "pip install 'edgeflare[whitebox]'" in line
    assert "takes pairs" not in line


def test_what_cannot_be_translated_says_what_can(tmp_path: Path) -> None:
    """Sounds, whose features have no gradient."""
    run = searched(EXAMPLE.parent / "spoken_words", tmp_path / "run", 1)
    line = refused(run)
    assert "spoken_words/original.tflite cannot be differentiated" in line
    assert "edgeflare inspect takes pairs of .tflite classifiers of images or arrays" in line
    assert "strategy" not in line


@pytest.mark.parametrize(
    ("device", "kernels"),
    [
        ("emulated-compiled-cpu", "the compiled model's CPU kernels"),
        ("emulated-micro", "TFLite Micro"),
    ],
)
def test_a_device_that_cannot_capture_is_named(
    original_run: Path, device: str, kernels: str
) -> None:
    line = refused(original_run, *BRIEF, "--device", device)
    assert f"{device}: tensors between operators cannot be read from {kernels}" in line


def test_seeds_that_are_gone_are_named(tmp_path: Path) -> None:
    pair = Path(shutil.copytree(EXAMPLE, tmp_path / "pair"))
    run = searched(pair, tmp_path / "run", 1)
    (pair / "seeds.npz").unlink()
    assert "seeds.npz" in refused(run)
