"""Pairs that a stranger made: nothing that they name is executed before it is trusted."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from canary import Canary, canary

Call = Callable[..., Any]


@dataclass(frozen=True)
class Crafted:
    """A copy of the example pair that can be tampered with, below an empty working directory."""

    bait: Canary

    def say(self, key: str, value: str) -> None:
        file = Path("pair/pair.toml")
        kept = [line for line in file.read_text().splitlines() if not line.startswith(f"{key} =")]
        file.write_text("\n".join([f"{key} = {json.dumps(value)}", *kept]) + "\n")

    def code(self, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(self.bait.code)


@pytest.fixture
def crafted(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crafted]:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    shutil.copytree(example, "pair")
    with canary(tmp_path / "bait") as bait:
        yield Crafted(bait)


def a_function_of_the_system(crafted: Crafted) -> None:
    crafted.say("original", "os:system")


def a_function_that_starts_programs(crafted: Crafted) -> None:
    crafted.say("original", "subprocess:call")


def a_file_in_its_folder(crafted: Crafted) -> None:
    crafted.code("pair/net.py")
    crafted.say("original", "net.py:predict")


def a_file_elsewhere(crafted: Crafted) -> None:
    crafted.code("elsewhere/net.py")
    crafted.say("original", f"{Path.cwd()}/elsewhere/net.py:predict")


def a_module_of_the_working_directory(crafted: Crafted) -> None:
    crafted.code("net.py")
    crafted.say("original", "net:predict")


def a_module_in_a_package(crafted: Crafted) -> None:
    crafted.code("pack/__init__.py")
    crafted.code("pack/net.py")
    crafted.say("original", "pack.net:predict")


def a_module_in_packages_without_a_file(crafted: Crafted) -> None:
    crafted.code("outer/inner/net.py")
    crafted.say("original", "outer.inner.net:predict")


def a_module_that_is_not_there(crafted: Crafted) -> None:
    crafted.code("pack/__init__.py")
    crafted.say("original", "pack.absent:predict")


def a_function_and_a_library_beside_it(crafted: Crafted) -> None:
    crafted.code("onnxruntime.py")
    crafted.code("matplotlib.py")
    crafted.say("original", "os.path:basename")


def a_function_as_compressed_model(crafted: Crafted) -> None:
    crafted.code("pair/net.py")
    crafted.say("compressed", "net.py:predict")


PAIRS = (
    a_function_of_the_system,
    a_function_that_starts_programs,
    a_file_in_its_folder,
    a_file_elsewhere,
    a_module_of_the_working_directory,
    a_module_in_a_package,
    a_module_in_packages_without_a_file,
    a_module_that_is_not_there,
    a_function_and_a_library_beside_it,
    a_function_as_compressed_model,
)


@pytest.mark.parametrize("craft", PAIRS)
def test_no_code_of_a_pair_is_executed_before_it_is_trusted(
    craft: Callable[[Crafted], None], crafted: Crafted, call: Call
) -> None:
    craft(crafted)
    for command in (
        ("search", "pair", "--dry-run"),
        ("search", "pair", "--out", "run"),
        ("bench", "pair", "--out", "out"),
        ("bench", "pair", "--out", "out", "--dry-run"),
        ("rank", "pair", "--compressed", "pair/original.tflite", "--out", "out"),
    ):
        said = call(*command)
        assert said.code == 2, said.err
        if craft is not a_function_as_compressed_model:
            assert "--trust" in said.complaint()
        assert crafted.bait.harm() == []
    assert not Path("run").exists()


@pytest.mark.parametrize("kind", ["pipe", "endless"])
@pytest.mark.parametrize("key", ["original", "compressed", "seeds"])
def test_a_file_that_never_ends_is_refused(
    key: str, kind: str, crafted: Crafted, call: Call
) -> None:
    name = "x.npz" if key == "seeds" else "x.tflite"
    if kind == "pipe":
        os.mkfifo(f"pair/{name}")
    else:
        Path(f"pair/{name}").symlink_to("/dev/zero")
    crafted.say(key, name)
    said = call("search", "pair", "--first", "1", "--max-queries", "1", "--out", "run")
    assert said.code == 2
    assert name in said.err.splitlines()[-1]


@pytest.mark.parametrize("name", ["../../x", "/absolute/x", "..", ".hidden", "-rf", "a" * 300])
def test_a_name_is_shown_and_leads_nowhere(
    name: str, crafted: Crafted, call: Call, tmp_path: Path
) -> None:
    crafted.say("name", name)
    before = {path.name for path in tmp_path.iterdir()}
    said = call("search", "pair", "--first", "1", "--max-queries", "1", "--fail-on", "none")
    assert said.code == 0, said.err
    (run,) = Path("runs").iterdir()
    assert run.name[0] not in ".-"
    assert json.loads((run / "run.json").read_bytes())["pair"]["name"] == name
    assert name in said.out.replace("\n", "")
    assert {path.name for path in tmp_path.iterdir()} == before
    assert {path.name for path in Path.cwd().iterdir()} == {"pair", "runs"}


def test_a_name_sends_no_control_characters_to_the_terminal(crafted: Crafted, call: Call) -> None:
    crafted.say("name", "\x1b]0;title\x07\x1b[2Jpair\u202e")
    said = call("search", "pair", "--first", "1", "--dry-run")
    assert said.code == 0, said.err
    assert r"\x1b]0;title\x07\x1b[2Jpair\u202e" in said.out.replace("\n", "")
    assert "\x1b" not in said.out + said.err
    crafted.say("\x1b[2J", "x")
    said = call("search", "pair", "--dry-run")
    assert said.code == 2
    assert "\x1b" not in said.err


def dry_run(call: Call, *more: str) -> Any:
    return call("search", "pair", "--first", "1", "--dry-run", *more)


@pytest.mark.parametrize("changed", ["pair.toml", "net.py"])
def test_trust_is_kept_until_a_file_changes(crafted: Crafted, call: Call, changed: str) -> None:
    a_file_in_its_folder(crafted)
    assert dry_run(call, "--trust").code == 0
    assert dry_run(call).code == 0
    assert Path("~/.config/edgeflare/trusted.json").expanduser().stat().st_mode & 0o777 == 0o600
    with (Path("pair") / changed).open("a") as file:
        file.write("# more\n")
    (crafted.bait.folder / "executed").unlink()
    said = dry_run(call)
    assert said.code == 2
    assert "pair/net.py:predict, which needs your trust" in said.complaint()
    assert crafted.bait.harm() == []


def test_what_is_executed_is_the_source_that_was_trusted(crafted: Crafted, call: Call) -> None:
    a_file_in_its_folder(crafted)
    source = Path("pair/net.py")
    cached = Path(importlib.util.cache_from_source(str(source)))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), str(cached), invalidation_mode=unchecked)
    source.write_text("import numpy as np\ndef predict(x):\n    return np.ones((1, 10), 'f')\n")
    assert dry_run(call, "--trust").code == 0
    assert crafted.bait.harm() == []


def test_a_function_that_the_command_names_is_trusted(crafted: Crafted, call: Call) -> None:
    crafted.code("pair/net.py")
    assert dry_run(call, "--original", "pair/net.py:predict").code == 0
    assert crafted.bait.harm() == ["executed"]
