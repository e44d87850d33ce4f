"""Runs of pairs with a Python function, imported only where the user names it or has agreed to it.

One makes what the models take, a front end; the other reads what they put out, a decoding.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from called_commands import call_here, completed, document_of, refused
from edgeflare.tasks.task_registry import TASKS
from graph_writer import write_logistic_models
from plugin_package import install_plugin

pytestmark = pytest.mark.slow

TASK = Path(__file__).parents[1] / "tasks" / "object_seen.py"

BEGIN = """
import numpy as np
from pathlib import Path

Path(__file__).with_name("imported").touch()

"""
FRONT_END = f"""{BEGIN}
def features(wave):
    return (wave.reshape(3, -1).mean(axis=1) / 8000.0)[None]
"""
DECODE = f"""{BEGIN}
def decode(outputs):
    (score,) = outputs["y"].reshape(-1)
    return [[0.1, 0.1, 0.6, 0.6, score, 0]] if score > 0.2 else []
"""
FILES = """
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"
"""
WITH_FRONT_END = f"""{FILES}
[task]
name = "regression"
tolerance = 0.001

[inputs.x]
domain = "audio"
sample_rate = 8000
samples = 60

[inputs.x.front_end]
name = "code.py:features"
"""
WITH_DECODING = f"""{FILES}
[task]
name = "object-seen"
decoding = "code.py:decode"
threshold = 0.55

[inputs.x]
domain = "array"
lowest = -4.0
highest = 4.0
"""


@dataclass(frozen=True)
class Searched:
    """A pair with a function, options of its search, and its run.

    Attributes:
        code: the function's file.
        other: code that does something else.

    """

    pair: Path
    options: tuple[str, ...]
    name: str
    code: str
    other: str

    @property
    def run(self) -> Path:
        return self.pair.parent / "run"

    @property
    def function(self) -> str:
        return f"{self.pair / 'code.py'}:{self.name}"

    @property
    def imported(self) -> Path:
        return self.pair / "imported"

    def copied(self, folder: Path, code: str) -> Path:
        """Copy the pair with other code, of which nothing was imported yet."""
        other = Path(shutil.copytree(self.pair, folder / "other"))
        (other / "imported").unlink(missing_ok=True)
        (other / "code.py").write_text(code)
        return other


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    points = {"edgeflare.tasks": {"object-seen": "object_seen:ObjectSeen"}}
    folder = tmp_path_factory.mktemp("task")
    installed = install_plugin(folder, "object_seen", TASK.read_text(), points)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(installed)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        vars(TASKS).pop("_entries", None)  # what was installed before
        yield
        vars(TASKS).pop("_entries", None)


def written(folder: Path, toml: str, code: str) -> Path:
    folder.mkdir()
    (folder / "pair.toml").write_text(toml)
    (folder / "code.py").write_text(code)
    return folder


@pytest.fixture(scope="module")
def front_end(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    pair = written(tmp_path_factory.mktemp("front_end") / "pair", WITH_FRONT_END, FRONT_END)
    write_logistic_models(pair, 3, (0.02, 7))
    waves = np.random.default_rng(6).integers(-9000, 9000, (3, 60), np.int16)
    np.savez(pair / "seeds.npz", waves=waves, sample_rate=np.int64(8000))
    options = (
        *("--strategy", "climb", "--max-queries", "10"),
        *("--shrink", "0", "--fail-on", "none"),
    )
    other = FRONT_END.replace("8000.0", "7000.0")
    searched = Searched(pair, options, "features", FRONT_END, other)
    completed("search", pair, "--trust", *options, "--out", searched.run)
    return searched


@pytest.fixture(scope="module")
def decoding(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """The models of this pair give its first seed .56 and .5."""
    pair = written(tmp_path_factory.mktemp("decoding") / "pair", WITH_DECODING, DECODE)
    write_logistic_models(pair, 1, (0.5, 0))
    np.savez(pair / "seeds.npz", x=np.array([[0.24], [2.0], [-3.0]], np.float32))
    options = ("--max-queries", "20", "--shrink", "0", "--fail-on", "none")
    searched = Searched(pair, options, "decode", DECODE, DECODE.replace("0.2", "0.3"))
    completed("search", pair, "--trust", *options, "--out", searched.run)
    return searched


@pytest.fixture(params=["front_end", "decoding"])
def searched(request: pytest.FixtureRequest) -> Searched:
    either: Searched = request.getfixturevalue(request.param)
    return either


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who has agreed to nothing yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_a_search_needs_trust(searched: Searched, tmp_path: Path) -> None:
    unknown = f"{searched.code}\n# {tmp_path}, which nobody has trusted yet\n"
    other = searched.copied(tmp_path, unknown)
    said = refused("search", other, *searched.options, "--out", tmp_path / "run")
    assert f"names the Python function {other / 'code.py'}:{searched.name}" in said
    assert not (other / "imported").exists()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["replay", "explain"])
def test_what_a_run_names_is_imported_only_where_the_user_has_named_it(
    searched: Searched, nobody: None, tmp_path: Path, command: str
) -> None:
    del nobody  # who comes once another user has searched, whatever test is the first
    options = ("--out", tmp_path / "replay") if command == "replay" else ()
    searched.imported.unlink(missing_ok=True)
    said = refused(command, searched.run, *options)
    assert said.endswith(f"name it again with --function {searched.function}")
    refused(command, searched.run, *options, "--function", "elsewhere.py:features")
    assert not searched.imported.exists()
    named = ("--function", searched.function)
    completed(command, searched.run, *options, *named, code=int(command == "replay"))
    assert searched.imported.exists()
    completed("explain", searched.run, "0")


@pytest.mark.usefixtures("nobody")
def test_what_a_trusted_pair_names_stays_trusted_as_long_as_it_is_that_code(
    front_end: Searched, tmp_path: Path
) -> None:
    pair, run = front_end.pair, front_end.run
    refused("export", run, "0", "--out", tmp_path / "0.zip")
    completed("search", pair, "--strategy", "climb", "--trust", "--dry-run")
    completed("export", run, "0", "--out", tmp_path / "0.zip")
    completed("replay", run, "--out", tmp_path / "replay", code=1)
    front_end.imported.unlink()
    (pair / "code.py").write_text(front_end.other)
    try:
        said = refused("explain", run)
    finally:
        (pair / "code.py").write_text(front_end.code)
    assert "its code is another than you agreed to: if you trust it, name it" in said
    assert not front_end.imported.exists()


def test_a_function_that_changed_since_is_refused(searched: Searched) -> None:
    resume = ("--trust", *searched.options, "--out", searched.run, "--resume")
    (searched.pair / "code.py").write_text(searched.other)
    try:
        said = refused("explain", searched.run, "--function", searched.function)
        resumed = refused("search", searched.pair, *resume)
    finally:
        (searched.pair / "code.py").write_text(searched.code)
    assert f"the code of {searched.function} is another" in said
    assert "belongs to another pair" in resumed


def test_a_search_reads_what_the_function_makes(decoding: Searched) -> None:
    document = document_of(decoding.run)
    (seed,) = document["deviating_seeds"]
    assert seed["labels"] == {"original": 1, "twin": 0, "device": 0}
    assert seed["cause"] == "compression"
    assert document["pair"]["task_settings"]["decoding"] == decoding.function
    assert len(document["pair"]["functions"]) == 1


def test_a_run_is_read_without_the_function(decoding: Searched, tmp_path: Path) -> None:
    run = Path(shutil.copytree(decoding.run, tmp_path / "run"))
    decoding.imported.unlink(missing_ok=True)
    (run / "run.json").unlink()
    completed("report", run, "--csv")
    assert "something" in (run / "findings.csv").read_text()
    assert not decoding.imported.exists()


def test_an_export_says_that_its_script_cannot_run_the_function(
    decoding: Searched, tmp_path: Path
) -> None:
    said = refused("export", decoding.run, "0", "--out", tmp_path / "0.zip")
    assert "pass on the run directory and the pair instead" in said


@pytest.mark.parametrize(
    ("body", "calls", "says"),
    [
        ("raise ValueError('no anchors')", 30, "raised ValueError: no anchors"),
        ("return [[1, 2, 3]]", 0, "returned an array of shape (1, 3); expected rows of numbers"),
    ],
)
def test_a_function_that_fails_is_one_line(
    decoding: Searched, tmp_path: Path, body: str, calls: int, says: str
) -> None:
    """At once, or in the middle of a search."""
    code = (
        "calls = []\n"
        "def decode(outputs):\n"
        "    calls.append(outputs)\n"
        f"    if len(calls) > {calls}:\n        {body}\n"
        "    return [[0, 0, 1, 1, outputs['y'].reshape(-1)[0], 0]]\n"
    )
    other = decoding.copied(tmp_path, code)
    said = call_here("search", other, "--trust", *decoding.options, "--out", tmp_path / "run")
    assert said.code == 2, said.err
    line = said.err.splitlines()[-1]
    assert line.startswith(f"edgeflare: {other / 'code.py'}:decode {says}")
    assert "Traceback" not in said.err
    if body.startswith("raise"):
        file = Path(line.rpartition("its traceback is in ")[2])
        assert "in decode" in file.read_text()


def test_a_search_that_a_function_ended_goes_on_once_its_cause_is_mended(
    decoding: Searched, tmp_path: Path
) -> None:
    code = (
        "from pathlib import Path\n"
        "calls = []\n"
        "def decode(outputs):\n"
        "    calls.append(outputs)\n"
        "    table = Path(__file__).with_name('least.txt')\n"
        "    if len(calls) == 30 and table.read_text() == '0.2':\n        table.unlink()\n"
        "    least = float(table.read_text())\n"
        "    score = outputs['y'].reshape(-1)[0]\n"
        "    return [[0.1, 0.1, 0.6, 0.6, score, 0]] if score > least else []\n"
    )
    other = decoding.copied(tmp_path, code)
    (other / "least.txt").write_text("0.2")
    command = ("search", other, "--trust", *decoding.options, "--out")
    ended = call_here(*command, tmp_path / "run")
    assert ended.code == 2
    assert "raised FileNotFoundError" in ended.err.splitlines()[-1]
    before = document_of(tmp_path / "run")
    assert before["stopped_by"] == "error"
    assert before["totals"]["queries"] < 40
    assert "ended by an error before its end" in completed("report", tmp_path / "run").out

    (other / "least.txt").write_text("0.20")
    completed(*command, tmp_path / "run", "--resume")
    completed(*command, tmp_path / "whole")
    once, again = document_of(tmp_path / "whole"), document_of(tmp_path / "run")
    assert again["totals"]["queries"] == once["totals"]["queries"] > before["totals"]["queries"]
    for listed in ("deviating_seeds", "findings"):
        assert [one["sha256"] for one in again[listed]] == [one["sha256"] for one in once[listed]]
