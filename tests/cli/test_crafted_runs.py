"""Run directories that a stranger made: what they name is neither executed, read nor contacted."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from called_commands import EXAMPLE, call_here, completed, document_of, refused
from canary import Canary

Call = Callable[..., Any]


@dataclass(frozen=True)
class Crafted:
    """A copy of a run that can be tampered with, in an empty working directory."""

    run: Path
    bait: Canary

    def about(self, key: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Change a part of the journal's header."""
        with sqlite3.connect(self.run / "run.db") as journal:
            (text,) = journal.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
            value = json.loads(text)
            change(value)
            journal.execute("UPDATE about SET value = ? WHERE key = ?", (json.dumps(value), key))
        journal.close()

    def original(self, source: str, file: Path) -> None:
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        self.about("pair", lambda pair: pair.update(original=source))
        self.about("pair", lambda pair: pair["sha256"].update(original=sha256))

    def images(self, path: str) -> None:
        """Let every finding name that image, in the document and in the journal."""
        document = document_of(self.run)
        for entry in (*document["findings"], *document["deviating_seeds"]):
            entry.update(file=path, seed_file=path)
        (self.run / "run.json").write_text(json.dumps(document))
        with sqlite3.connect(self.run / "run.db") as journal:
            journal.execute("UPDATE triggers SET image = ?, seed_image = ?", (path, path))
        journal.close()


@pytest.fixture
def crafted(finished: Any, bait: Canary) -> Crafted:
    return Crafted(Path(shutil.copytree(finished.folder, Path("run").absolute())), bait)


def a_file_as_original(crafted: Crafted) -> str:
    file = crafted.run / "net.py"
    file.write_text(crafted.bait.code)
    crafted.original(f"{file}:predict", file)
    return f"--original {file}:predict"


def a_module_as_original(crafted: Crafted) -> str:
    file = Path("net.py")
    file.write_text(crafted.bait.code)
    crafted.original("net:predict", file)
    return "--original net:predict"


def a_module_in_a_package_as_original(crafted: Crafted) -> str:
    Path("pack").mkdir()
    for name in ("__init__.py", "net.py"):
        (Path("pack") / name).write_text(crafted.bait.code)
    crafted.original("pack.net:predict", Path("pack/net.py"))
    return "--original pack.net:predict"


def a_secret_as_compressed_model(crafted: Crafted) -> str:
    crafted.about("pair", lambda pair: pair.update(compressed=str(crafted.bait.secret)))
    return "--compressed"


def an_endless_compressed_model(crafted: Crafted) -> str:
    (crafted.run / "model.tflite").symlink_to("/dev/zero")
    model = str(crafted.run / "model.tflite")
    crafted.about("pair", lambda pair: pair.update(compressed=model))
    return "model.tflite is not a regular file"


def a_device(name: str) -> Callable[[Crafted], str]:
    def craft(crafted: Crafted) -> str:
        device = name.format(port=crafted.bait.port)
        crafted.about("plan", lambda plan: plan.update(devices=[device]))
        return f"--device {device}"

    return craft


def a_profile_of_the_working_directory(crafted: Crafted) -> str:
    program = crafted.bait.program(crafted.bait.folder / "python")
    Path("device_profiles").mkdir()
    text = f'transport = "emulated"\npython = "{program}"\n'
    Path("device_profiles/bench.toml").write_text(text)
    return a_device("bench")(crafted)


def a_profile_of_the_user(crafted: Crafted) -> str:
    program = crafted.bait.program(crafted.bait.folder / "python")
    folder = Path("~/.config/edgeflare/devices").expanduser()
    folder.mkdir(parents=True)
    (folder / "emulated-builtin.toml").write_text(f'transport="emulated"\npython = "{program}"\n')
    return "--device emulated-builtin"


def an_image_outside(crafted: Crafted) -> str:
    crafted.images(str(crafted.bait.secret))
    return "outside"


def an_image_above(crafted: Crafted) -> str:
    crafted.images(os.path.relpath(crafted.bait.secret, crafted.run))
    return "outside"


def an_image_behind_a_link(crafted: Crafted) -> str:
    (crafted.run / "findings" / "x.png").symlink_to(crafted.bait.secret)
    crafted.images("findings/x.png")
    return "outside"


def a_link_as_document(crafted: Crafted) -> str:
    (crafted.run / "run.json").unlink()
    (crafted.run / "run.json").symlink_to(crafted.bait.secret)
    return "outside"


def a_link_as_journal(crafted: Crafted) -> str:
    (crafted.run / "run.db").unlink()
    (crafted.run / "run.db").symlink_to(crafted.bait.secret)
    return "symbolic link"


DEVICES: dict[str, Callable[[Crafted], str]] = {
    "an address": a_device("grpc://127.0.0.1:{port}"),
    "a board": a_device("ssh://stranger.example"),
    "a phone": a_device("adb://0123"),
    "a shipped profile that is no emulation": a_device("android-arm64"),
    "a profile of the working directory": a_profile_of_the_working_directory,
    "a profile of the user": a_profile_of_the_user,
}
RUNS: dict[str, Callable[[Crafted], str]] = DEVICES | {
    "a file as original": a_file_as_original,
    "a module as original": a_module_as_original,
    "a module in a package as original": a_module_in_a_package_as_original,
    "a secret as compressed model": a_secret_as_compressed_model,
    "an endless compressed model": an_endless_compressed_model,
    "an image outside": an_image_outside,
    "an image above": an_image_above,
    "an image behind a link": an_image_behind_a_link,
    "a link as document": a_link_as_document,
    "a link as journal": a_link_as_journal,
}


@pytest.mark.parametrize("case", RUNS)
def test_nothing_that_a_run_names_is_executed_read_or_contacted(
    case: str, crafted: Crafted
) -> None:
    seed_id = document_of(crafted.run)["findings"][0]["seed_id"]
    named = RUNS[case](crafted)
    commands = {
        "explain": ("explain", "run"),
        "replay": ("replay", "run", "--out", "again"),
        "repair": ("repair", "run", "--out", "repaired"),
        "export": ("export", "run", str(seed_id)),
        "report": ("report", "run", "--html", "--junit", "--csv"),
        "compare": ("compare", "run", "run"),
    }
    for name, command in commands.items():
        said = call_here(*command)
        assert crafted.bait.harm() == [], name
        asks_no_device = name == "export" and case in DEVICES
        if name in ("explain", "replay", "repair", "export") and not asks_no_device:
            assert (said.code, name) == (2, name), said.err
            few = "seeds, and a repair needs at least" in said.complaint()
            assert named in said.complaint() or (few and name == "repair"), name
    assert not Path("again").exists()


def test_an_ensemble_elsewhere_is_named_again_to_be_started(crafted: Crafted) -> None:
    program = crafted.bait.program(crafted.bait.folder / "python")
    member = f"builtin@{program}"
    crafted.about("plan", lambda plan: plan.update(elsewhere=[member]))
    assert f"--ensemble xnnpack,{member}" in refused(
        "repair", "run", "--out", "repaired", "--search-again"
    )
    assert "whose ensemble is --ensemble" in refused(
        "repair", "run", "--out", "repaired", "--search-again", "--ensemble", "xnnpack"
    )
    assert crafted.bait.harm() == []


def test_pictures_are_not_drawn_behind_a_link(crafted: Crafted) -> None:
    (crafted.run / "explain").symlink_to(crafted.bait.folder)
    before = sorted(crafted.bait.folder.iterdir())
    assert "outside" in refused("explain", "run")
    assert sorted(crafted.bait.folder.iterdir()) == before


def test_modules_in_the_working_directory_are_not_imported_by_workers(
    crafted: Crafted, start: Call
) -> None:
    for name in ("numpy.py", "json.py", "edgeflare_agent.py", "sitecustomize.py"):
        Path(name).write_text(crafted.bait.code.replace("import numpy as np\n", ""))
    # `python -m` would import them itself: the installed command does not.
    command = "import sys; sys.path.remove(''); from edgeflare.cli import main; main()"
    seed_id = document_of(crafted.run)["findings"][0]["seed_id"]
    said = start("explain", "run", str(seed_id), command=("-c", command))
    assert said.code == 0, said.err
    assert crafted.bait.harm() == []


def test_a_run_with_a_python_function_is_explained_by_who_has_agreed_to_it(
    crafted: Crafted, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Path("pair")
    shutil.copytree(EXAMPLE, pair)
    (pair / "net.py").write_text(crafted.bait.code)
    text = (pair / "pair.toml").read_text().replace("original.tflite", "net.py:predict")
    (pair / "pair.toml").write_text(text)
    options = ("--first", "2", "--max-queries", "5", "--fail-on", "none", "--out", "mine")
    completed("search", pair, *options, code=2)
    assert crafted.bait.harm() == []
    completed("search", pair, *options, "--trust")
    assert crafted.bait.harm() == ["executed"]
    completed("explain", "mine")
    (crafted.bait.folder / "executed").unlink()

    monkeypatch.setenv("HOME", str(Path("home of somebody else").absolute()))
    assert f"--original {pair.absolute()}/net.py:predict" in refused("explain", "mine")
    assert crafted.bait.harm() == []
    completed("explain", "mine", "--original", "pair/net.py:predict")
    assert crafted.bait.harm() == ["executed"]


def test_export_lists_what_it_packs(crafted: Crafted) -> None:
    seed_id = document_of(crafted.run)["findings"][0]["seed_id"]
    said = completed("export", "run", str(seed_id))
    size = Path(document_of(crafted.run)["pair"]["compressed"]).stat()
    assert f"{size.st_size:,} bytes  compressed.tflite" in said.out
    for name in ("finding.json", "input.png", "original.tflite", "reproduce.py", "seed.png"):
        assert f"bytes  {name}\n" in said.out
