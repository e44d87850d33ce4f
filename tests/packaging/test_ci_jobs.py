"""The jobs that users put into CI: their own commands, run as a runner would run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from command_server import BRIEF
from forked_commands import forked_edgeflare

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fashion_lenet4"
BRIEFLY = "--limit 20\n--undecided pass"

pytestmark = pytest.mark.slow


def ran(
    script: str, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    programs = forked_edgeflare().parent, Path(sys.executable).parent
    path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **environment, BRIEF: "1", "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def steps_of_the_action(**given: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Return script and environment of each step of the GitHub action, by its name."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {name: given.get(name, one.get("default")) for name, one in action["inputs"].items()}

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)

    steps: list[Any] = action["runs"]["steps"]
    return {
        one["name"]: (one["run"], {key: filled(text) for key, text in one.get("env", {}).items()})
        for one in steps
        if "run" in one
    }


def test_the_github_action_checks_tells_and_tries_again(tmp_path: Path) -> None:
    before, now = tmp_path / "before" / "lenet4", tmp_path / "now" / "lenet4"
    shutil.copytree(EXAMPLE, before)
    (before / "compressed.tflite").rename(before / "int8.tflite")
    described = (before / "pair.toml").read_text().replace("compressed.tflite", "int8.tflite")
    (before / "pair.toml").write_text(described)
    steps = steps_of_the_action(pair="before/lenet4", options=BRIEFLY, regressions="regressions")
    summary = tmp_path / "summary.md"
    environment = {"GITHUB_STEP_SUMMARY": str(summary)}

    def step(name: str) -> subprocess.CompletedProcess[str]:
        script, own = steps[name]
        return ran(script, tmp_path, {**environment, **own})

    checked = step("Check the model")
    assert checked.returncode == 0, checked.stderr
    told = step("Tell what was found")
    assert told.returncode == 0, told.stderr
    assert "::notice title=edgeflare check fashion_lenet4%3A gate " in told.stdout
    assert "May ship" in summary.read_text()
    assert (tmp_path / "edgeflare-check" / "check.html").is_file()
    for kept in ("first", "second"):
        shutil.copytree(tmp_path / "edgeflare-check" / "near", tmp_path / "regressions" / kept)
    before.parent.rename(now.parent)  # as on another machine than that of the runs
    steps = steps_of_the_action(pair="now/lenet4", regressions="regressions")
    again = step("Try known findings again")
    assert again.returncode == 1, again.stderr  # the example still decides otherwise there
    assert all(f"replay-{kept}-" in again.stdout for kept in ("first", "second"))


def test_a_command_that_has_to_be_corrected_is_all_that_the_action_says(tmp_path: Path) -> None:
    steps = steps_of_the_action(pair="absent", regressions="regressions")
    script, own = steps["Check the model"]
    checked = ran(script, tmp_path, own)
    assert checked.returncode == 2
    assert "there is no pair folder absent" in checked.stderr
    for name in ("Tell what was found", "Try known findings again", "Comment"):
        script, own = steps[name]
        said = ran(script, tmp_path, own)
        assert (said.returncode, said.stdout, said.stderr) == (0, "", ""), name


def test_regressions_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "edgeflare-check").mkdir()
    (tmp_path / "edgeflare-check" / "check.json").touch()
    steps = steps_of_the_action(pair=str(EXAMPLE), regressions="regresions")
    script, own = steps["Try known findings again"]
    said = ran(script, tmp_path, own)
    assert said.returncode == 2
    assert said.stdout == "::error::regressions: regresions has no folder of a run\n"


def test_a_comment_that_a_fork_may_not_write_fails_no_job(tmp_path: Path) -> None:
    (tmp_path / "gh").write_text("#!/bin/sh\necho refused >&2\nexit 1\n")
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "edgeflare-check").mkdir()
    (tmp_path / "edgeflare-check" / "summary.md").touch()
    script, own = steps_of_the_action(pair=str(EXAMPLE))["Comment"]
    told = ran(f'PATH="$PWD:$PATH"\n{script}', tmp_path, own)
    assert (told.returncode, told.stderr) == (0, "refused\n" * 2)
    assert told.stdout.startswith("::warning::no comment: ")


def test_the_gitlab_job_checks_and_reports_whatever_came_of_it(tmp_path: Path) -> None:
    job = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())[".edgeflare-check"]
    two = {
        "OPTIONS": "--limit 20 --no-near --strict",
        "DEVICE": "emulated-builtin emulated-xnnpack",
    }
    environment = {**job["variables"], "PAIR": str(EXAMPLE), **two}
    checked = ran("\n".join(job["script"]), tmp_path, environment)
    told = ran("\n".join(job["after_script"]), tmp_path, environment)
    assert (checked.returncode, told.returncode) == (1, 0), told.stderr
    written = {path.name for path in (tmp_path / "edgeflare-check").iterdir()}
    assert {"check.html", "junit.xml", "summary.md"} <= written
    assert "on emulated-builtin, emulated-xnnpack" in " ".join(checked.stdout.split())


def test_the_page_gives_the_action_and_the_job_what_they_take() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    github, gitlab = map(
        yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    )
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    (used,) = (one["with"] for one in github["jobs"]["model"]["steps"] if "with" in one)
    assert used.keys() <= inputs.keys()
    assert {name for name, one in inputs.items() if one.get("required")} <= used.keys()
    assert gitlab["model"]["extends"] in yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())
