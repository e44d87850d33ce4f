"""The commands and snippets of the documentation, as they stand there.

Each command can be parsed, and what it names of the examples exists. README.md runs, and so do the
pages of `STORIES`, which show what no other test of commands does: a page is a story, whose blocks
run in order, in a new folder that holds the examples. What a block is for stands behind its fence:

    ```bash              runs, and must exit with 0; of a line that begins with `make`, the target
                         must exist, since CI runs those themselves
    ```bash server       runs beside what follows, until the next server or the end of the page
    ```bash old_board    runs in a test of its own, which needs that environment
    ```bash whitebox     its page runs where that extra is installed, as it is in CI
    ```bash fleet        needs Ray, of the extra fleet; so do kernel sets, by their names
    ```toml some/file    is written to that file; so is ```python some_file
    ```python            runs
    ```text              is for readers

Only addresses and places that belong to the reader's machines are replaced, and what makes some
commands briefer; `edgeflare check` is brief, as in its own tests. What README.md does with its
first run is done once: a page that shows such a command in the same words goes on with a
copy of that run. Blocks of `ELSEWHERE` are parsed alone. `edgeflare` is forked from a process that
has imported it, unless a page has installed a package beside it.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from command_server import BRIEF
from edgeflare.cli.app import LazyCommand, app
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.trust import decided_by_user
from edgeflare_protos.kernel_sets import KERNEL_SETS
from forked_commands import forked_edgeflare
from free_port import free_port

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    ROOT / "skills" / "edgeflare" / "SKILL.md",
]
FENCE = re.compile(r"^```(\w+)?(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 300

STORIES = frozenset(
    {
        *("conditions.md", "detection.md", "devices.md", "explain.md", "inspect.md"),
        *(
            "ci.md",
            "operators.md",
            "pairs.md",
            "pytest.md",
            "python.md",
            "rank.md",
            "report.md",
            "reservation.md",
        ),
        *("models.md", "run.md", "security.md", "transport.md"),
        *("SKILL.md", "tutorial.md", "may-i-ship.md", "which-layer.md", "worse-on-the-phone.md"),
    }
)
"""Pages beside README.md with packages, profiles, pairs, tests and scripts of the reader's own."""

ELSEWHERE: Mapping[str, str] = {
    "edgeflare operators": "cli/test_plugins.py",
    "edgeflare search examples/fashion_lenet4 --limit 3 --max-queries 300 --coverage": (
        "cli/test_covered_runs.py"
    ),
    "edgeflare search examples/fashion_lenet4 --limit 1 --max-queries 300": "cli/test_report.py",
    "edgeflare replay runs/theirs": "cli/test_replay.py",
    "edgeflare explain runs/theirs": "cli/test_explain.py",
    "edgeflare search examples/face_detection --dry-run": "cli/test_examples_of_other_domains.py",
    "edgeflare search examples/fashion_lenet4 --limit 5": "cli/test_replay.py",
}
"""Blocks of stories by how they begin, and the tests that run such commands."""

BRIEFER: Mapping[str, str] = {
    "--out runs/verdict": "--limit 20 --no-near --out runs/verdict",
    "limit=60": "limit=20",
    "limit=80": "limit=20",
    "check examples/fashion_lenet4 --limit 60": (
        "check examples/fashion_lenet4 --limit 20 --no-near"
    ),
    'severities="1-3"': 'severities="1"',
}
"""What is replaced, so that commands ask fewer inputs than those of a reader."""

ABSENT: Mapping[str, Callable[[], bool]] = {
    "openssl": lambda: shutil.which("openssl") is None,
    "whitebox": lambda: find_spec("jax") is None,
}
"""Whether a capability that pages need is not there; a page that needs one carries its mark."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the word behind that, and what is in it."""

    language: str
    word: str
    text: str


def blocks(page: Path) -> list[Block]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [Block(language, word, text) for language, word, text in found]


README = ROOT / "README.md"
FIRST_RUN = frozenset(
    line
    for block in blocks(README)
    for line in block.text.splitlines()
    if block.language == "bash" and "runs/first" in line
)
"""The commands that make the first run of README.md, or read it."""


class Stage:
    """The folder in which a page is played, and the process that it left running."""

    def __init__(self, folder: Path, first: Path | None, old_board: Path | None) -> None:
        """Lay out the examples.

        Args:
            folder: an empty one.
            first: the first run of README.md, made already; None for README.md itself.
            old_board: the Python of that environment, where it is needed.

        """
        self.folder = folder
        self._first = first
        shutil.copytree(ROOT / "examples", folder / "examples")
        site = folder / "site"
        install = "--quiet --no-deps --no-build-isolation --no-index"
        self._replaced = {
            "pip install .": f"python -m pip install {install} --target {shlex.quote(str(site))} .",
            "192.168.1.20": "127.0.0.1",
            "0.0.0.0": "127.0.0.1",  # noqa: S104 - replaced, not bound
            "50051": str(free_port()),
            **BRIEFER,
        }
        if old_board is not None:
            self._replaced["/opt/old-board/bin/python"] = str(old_board)
        programs = forked_edgeflare().parent, Path(sys.executable).parent
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join(map(str, [*programs, os.environ["PATH"]])),
            "PYTHONPATH": str(site),
            BRIEF: "1",
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTEST_ADDOPTS": "-p no:hypothesispytest",  # which no page has tests of, and is slow
        }
        self._server: subprocess.Popen[bytes] | None = None

    def play(self, block: Block) -> None:
        text = block.text
        for theirs, ours in self._replaced.items():
            text = text.replace(theirs, ours)
        if block.word == "server":
            self._serve(text)
        elif block.language == "bash":
            self._bash(text)
        elif block.language in ("python", "toml") and block.word:
            file = self.folder / block.word
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif block.language == "python":
            self._run([sys.executable, "-c", text])

    def _bash(self, text: str) -> None:
        lines = [line for line in text.splitlines() if not line.startswith("make ")]
        if self._first is not None and not FIRST_RUN.isdisjoint(lines):
            lines = [line for line in lines if line not in FIRST_RUN]
            shutil.copytree(self._first, self.folder / "runs" / "first", dirs_exist_ok=True)
        self._run(["bash", "-e", "-c", "\n".join(lines)])

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"

    def _serve(self, text: str) -> None:
        """Start a command, and wait until it prints its first line."""
        self.close()
        self._server = subprocess.Popen(
            shlex.split(text), cwd=self.folder, env=self._environment, stdout=subprocess.PIPE
        )
        assert self._server.stdout is not None
        assert select.select([self._server.stdout], [], [], SECONDS)[0], f"{text} says nothing"
        assert self._server.stdout.readline(), f"{text} ended"

    def close(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.communicate(timeout=SECONDS)
            self._server = None


@contextmanager
def stage(
    folder: Path, first: Path | None = None, old_board: Path | None = None
) -> Iterator[Stage]:
    opened = Stage(folder, first, old_board)
    try:
        yield opened
    finally:
        opened.close()


def play(page: Path, opened: Stage) -> None:
    for block in blocks(page):
        if block.word != "old_board" and not block.text.startswith(tuple(ELSEWHERE)):
            opened.play(block)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first run of README.md, all of which was played."""
    with stage(tmp_path_factory.mktemp("readme")) as opened:
        play(README, opened)
        return opened.folder / "runs" / "first"


def needed(page: Path) -> set[str]:
    """Return the capabilities that some block of a page needs."""
    told = blocks(page)
    needs = {block.word for block in told} & ABSENT.keys()
    if any("openssl " in block.text for block in told):
        needs.add("openssl")
    if any("edgeflare inspect " in block.text for block in told):
        needs.add("whitebox")
    return needs


@pytest.mark.slow
def test_what_the_readme_says_can_be_done(first: Path) -> None:
    assert (first / "run.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[getattr(pytest.mark, one) for one in needed(page)])
        for page in PAGES
        if page.name in STORIES
    ],
)
def test_what_a_page_says_can_be_done(page: Path, first: Path, tmp_path: Path) -> None:
    if lacks := [one for one in sorted(needed(page)) if ABSENT[one]()]:
        pytest.skip(f"needs {', '.join(lacks)}: see CONTRIBUTING.md")
    with stage(tmp_path, first) as opened:
        play(page, opened)


def test_what_is_parsed_alone_is_shown_and_tested_elsewhere() -> None:
    texts = [block.text for page in PAGES if page.name in STORIES for block in blocks(page)]
    for beginning, file in ELSEWHERE.items():
        assert any(text.startswith(beginning) for text in texts), beginning
        assert (ROOT / "tests" / file).exists()


def commands_of(page: Path) -> Iterator[list[str]]:
    """Yield the words of each call of edgeflare, without what the shell does with it."""
    for block in blocks(page):
        if block.language == "bash":
            for line in block.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line.partition(" || ")[0].partition(" > ")[0], comments=True)
                if words[:1] == ["edgeflare"] and "--help" not in words:
                    yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_can_be_parsed_and_what_it_names_exists(page: Path) -> None:
    for words in commands_of(page):
        command: Any = get_command(app)
        arguments = list(words)
        while True:
            command = command.load() if isinstance(command, LazyCommand) else command
            if not arguments or not hasattr(command, "commands"):
                break
            command = command.commands[arguments.pop(0)]
        command.make_context("edgeflare", arguments)
        assert all((ROOT / word).exists() for word in words if word.startswith("examples/")), words


@pytest.mark.slow
@pytest.mark.old_board
def test_the_old_board_of_the_documentation(old_board_python: Path, tmp_path: Path) -> None:
    told = blocks(ROOT / "docs" / "devices.md")
    with stage(tmp_path, None, old_board_python) as opened:
        for block in told:
            if block.language == "toml" or block.word == "old_board":
                opened.play(block)
    assert "old_board" in {block.word for block in told}


def test_every_profile_that_is_shown_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for page in PAGES:
        shown = {block.word: block.text for block in blocks(page) if block.language == "toml"}
        if "pyproject.toml" in shown:
            continue  # the profile is of a transport that the page makes
        for word, text in shown.items():
            if word.startswith("device_profiles/"):
                Path(word).parent.mkdir(exist_ok=True)
                Path(word).write_text(text, encoding="utf-8")
                assert find_profile(Path(word).stem, decided_by_user(True)), word


def test_every_block_says_what_it_is() -> None:
    for page in PAGES:
        fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page
        for block in blocks(page):
            assert block.language in {"bash", "python", "toml", "text", "yaml"}, (page, block)
            words = {"", "server", "fleet", "old_board", "whitebox", *KERNEL_SETS}
            assert block.language != "bash" or block.word in words, page


def test_the_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {
        target
        for page in [*PAGES, ROOT / "CONTRIBUTING.md"]
        for target in re.findall(
            r"(?:^|`)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert {"demo", "test"} <= named <= targets
