"""The wheel holds what a user needs, nothing else, and works outside the checkout."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGES = ("edgeflare", "edgeflare_agent", "edgeflare_operators", "edgeflare_protos")


def run(*command: str | Path, cwd: Path, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command that ends so, without the settings of the Python that runs the tests."""
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    run(*build, str(ROOT), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the commands of an environment that has the wheel.

    A path file lends it the dependencies of the environment that runs the tests. Python doesn't
    follow the path files of a folder that comes from one, so the checkout stays out of sight.
    """
    folder = tmp_path_factory.mktemp("elsewhere") / "venv"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    run(*pip, str(wheel), cwd=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def test_the_wheel_holds_the_four_packages_and_the_profiles(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in PACKAGES:
        assert {f"{package}/__init__.py", f"{package}/py.typed"} <= names
    profiles = {path.name for path in (ROOT / "device_profiles").glob("*.toml")}
    assert profiles
    assert {f"edgeflare/device_profiles/{name}" for name in profiles} <= names
    issues = {path.name for path in (ROOT / "known_issues").glob("*.toml")}
    assert {f"edgeflare/known_issues/{name}" for name in issues} <= names


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == set(PACKAGES)
    sources = [
        path.relative_to(room).as_posix()
        for room in (ROOT / "host", ROOT / "agent", ROOT / "operators", ROOT / "protos")
        for path in room.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert set(sources) <= set(names)


def test_the_packages_come_from_the_wheel(installed: Path) -> None:
    code = f"import {', '.join(PACKAGES)}; print(*(m.__file__ for m in ({', '.join(PACKAGES)})))"
    files = run(installed / "python", "-c", code, cwd=installed).split()
    assert len(files) == len(PACKAGES)
    assert all(Path(file).is_relative_to(installed.parent) for file in files)


def test_the_commands_work_outside_the_checkout(wheel: Path, installed: Path) -> None:
    said = run(installed / "edgeflare", "--version", cwd=installed)
    assert f"-{said.removeprefix('edgeflare ').strip()}-" in wheel.name
    listed = run(installed / "edgeflare", "devices", "list", cwd=installed)
    assert "emulated-builtin" in listed
    assert "pixel-change" in run(installed / "edgeflare", "operators", cwd=installed)
    assert "--help" in run(installed / "edgeflare-agent", "--help", cwd=installed)


def test_the_example_comes_with_the_wheel_and_its_first_command_says_a_verdict(
    installed: Path, tmp_path: Path
) -> None:
    said = run(installed / "edgeflare", "doctor", "--example", "example", cwd=tmp_path)
    assert not (tmp_path / "example" / "__pycache__").exists()  # pip compiles what it installs
    command = shlex.split(said.splitlines()[-1])
    assert command[:3] == ["edgeflare", "check", "example"]
    quick = ("--time-limit", "5s", "--out", "verdict", "--quiet")
    # What can be decided in 5 s depends on the machine; that a verdict is said does not.
    run(installed / "edgeflare", *command[1:], *quick, cwd=tmp_path, codes=(0, 1))
    assert json.loads((tmp_path / "verdict" / "check.json").read_text())["verdict"]
