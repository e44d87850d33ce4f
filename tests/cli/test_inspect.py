"""`edgeflare inspect`: what it says and writes, and what it refuses without touching the run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.devices.device import Device
from edgeflare.devices.device_probe import DeviceProbe
from edgeflare.diagnose.inspect import inspect_document

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

Call = Callable[..., Any]

ROOT = Path(__file__).parents[2]

BRIEF = ("--behaviour", "error", "--inputs", "100", "--precision", ".9")
"""Options that make what is refused late come soon."""


def searched(pair: Path, run: Path, call: Call, limit: int) -> Path:
    options = ("--max-queries", "20", "--shrink", "0", "--fail-on", "none", "--first", str(limit))
    assert call("search", pair, *options, "--out", run).code == 0
    return run


@pytest.fixture(scope="module")
def original_run(example: Path, call: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return searched(example, tmp_path_factory.mktemp("searched") / "run", call, 20)


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


def inspection(run: Path) -> dict[str, Any]:
    """What inspect.json holds."""
    written: dict[str, Any] = json.loads((run / "inspect.json").read_bytes())
    schema = Path(inspect_document.__file__).with_name("inspect.schema.json").read_bytes()
    jsonschema.Draft202012Validator(json.loads(schema)).validate(written)
    return written


def contents(run: Path) -> dict[str, bytes]:
    """Return all files of a run."""
    files = [path for path in run.rglob("*") if path.is_file()]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


def test_it_says_a_sentence_and_the_same_again(
    run: Path, call: Call, hypotheses: Callable[[str, str], Path], tmp_path: Path
) -> None:
    mine = hypotheses("bright left half", "one.input[:, :14].mean() > one.input.mean()")
    options = ("--precision", ".3", "--inputs", "240", "--hypotheses", mine)
    said = call("inspect", run, *options)
    assert said.code == 0, said.err
    written = inspection(run)
    assert said.out.splitlines()[0] == written["verdict"]["sentence"]
    assert written["verdict"]["name"] in ("diffuse", "channel", "nothing")
    assert written["hypotheses"][-1] == "bright left half"
    assert written["behaviours"] == ["activation", "error", "error-gradient"]
    assert [layer["operator"] for layer in written["layers"]] == [0, 1, 2, 3, 8]
    assert written["inputs"] == 200
    assert written["ended"] == "precise"

    first = (run / "inspect.json").read_bytes()
    quiet = call("inspect", run, *options, "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, f"{run / 'inspect.json'}\n", "")
    assert (run / "inspect.json").read_bytes() == first

    assert call("report", run, "--html").err == ""
    sentence = written["verdict"]["sentence"]
    assert f"{sentence[:1].upper()}{sentence[1:]}." in (run / "report.html").read_text("utf-8")


def test_a_device_captures_what_the_translation_computes(run: Path, call: Call) -> None:
    brief = ("--behaviour", "error", "--precision", ".9", "--inputs", "200")
    assert call("inspect", run, *brief).code == 0
    here = inspection(run)
    assert call("inspect", run, *brief, "--device", "emulated-xnnpack").code == 0
    assert inspection(run) == here
    assert here["verdict"]["name"] == "none"


@pytest.mark.parametrize("damage", ["{", '{"schema": "edgeflare.inspect/v1"}'])
def test_a_damaged_file_is_one_warning_and_no_section(run: Path, call: Call, damage: str) -> None:
    (run / "inspect.json").write_text(damage)
    said = call("report", run, "--html")
    assert said.code == 0
    (line,) = said.err.splitlines()
    assert line.startswith(f"warning: {run / 'inspect.json'} is damaged: ")
    assert line.endswith(f"; make it again with `edgeflare inspect {run}`")
    assert "Hidden units" not in (run / "report.html").read_text("utf-8")


def refused(call: Call, run: Path, *options: object) -> str:
    """Return the one line by which it is refused; nothing in the run is changed by it."""
    before = contents(run)
    said = call("inspect", run, *options)
    assert (said.code, said.out) == (2, "")
    assert contents(run) == before
    errors = [line for line in said.err.splitlines() if line.startswith("edgeflare: ")]
    assert len(errors) == 1
    assert said.err.splitlines()[-1] == errors[0]
    return str(errors[0])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--precision", "0"), "precision is 0: give a number above 0 and below 1"),
        (("--precision", "1"), "precision is 1: give a number above 0 and below 1"),
        (("--behaviour", "eror"), "did you mean 'error'?"),
        (("--inputs", "20"), "raise --inputs"),
        (("--hypotheses", "absent.py"), "absent.py"),
        (("--device", "absent"), "absent"),
    ],
)
def test_options_that_cannot_be(
    original_run: Path, call: Call, options: tuple[str, ...], line: str
) -> None:
    assert line in refused(call, original_run, *options)


@pytest.mark.parametrize(
    ("name", "returned", "line"),
    [
        ("mine", "one.nothing", "hypothesis 'mine' failed: "),
        ("mine", "'bright'", "hypothesis 'mine' returned 'bright': return a finite number or a"),
        ("mine", "float('nan')", "hypothesis 'mine' returned nan"),
        ("mine", "3", "hypothesis 'mine' is constant over "),
        ("deviates", "1", "'deviates' is the name of a built-in hypothesis: choose another"),
    ],
)
def test_hypotheses_that_cannot_be_held_against_anything(
    original_run: Path,
    call: Call,
    hypotheses: Callable[[str, str], Path],
    name: str,
    returned: str,
    line: str,
) -> None:
    file = hypotheses(name, returned)
    assert line in refused(call, original_run, *BRIEF, "--hypotheses", file)


@pytest.mark.parametrize("package", ["jax", "sklearn"])
def test_without_the_extra_it_is_named(
    original_run: Path, call: Call, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for name in [one for one in sys.modules if one.startswith("edgeflare.whitebox")]:
        monkeypatch.delitem(sys.modules, name)
    line = refused(call, original_run)
    assert "pip install 'edgeflare[whitebox]'" in line
    assert "takes pairs" not in line


def test_what_cannot_be_translated_says_what_can(example: Path, call: Call, tmp_path: Path) -> None:
    """Sounds, whose features have no gradient."""
    run = searched(example.parent / "spoken_words", tmp_path / "run", call, 1)
    line = refused(call, run)
    assert "spoken_words/original.tflite cannot be differentiated" in line
    assert "edgeflare inspect takes pairs of .tflite classifiers of images or arrays" in line
    assert "strategy" not in line


def test_a_device_that_cannot_capture_is_named(
    original_run: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Device.probe

    def of_an_old_agent(one: Device, content: bytes, **_: bool) -> DeviceProbe:
        return probe(one, content)

    monkeypatch.setattr(Device, "probe", of_an_old_agent)
    line = refused(call, original_run, *BRIEF, "--device", "emulated-builtin")
    assert "emulated-builtin cannot capture the tensors inside of a model" in line


def test_seeds_that_are_gone_are_named(example: Path, call: Call, tmp_path: Path) -> None:
    pair = Path(shutil.copytree(example, tmp_path / "pair"))
    run = searched(pair, tmp_path / "run", call, 1)
    (pair / "seeds.npz").unlink()
    assert "seeds.npz" in refused(call, run)


@pytest.mark.parametrize("example_pair", ["face_detection", "spoken_words"])
def test_models_that_cannot_be_translated_are_named(
    call: Call, tmp_path: Path, example_pair: str
) -> None:
    run = searched(ROOT / "examples" / example_pair, tmp_path / "run", call, 1)
    assert "tflite" in refused(call, run)
