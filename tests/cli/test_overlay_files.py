"""`edgeflare explain --model-explorer`: what it writes and says, and what Model Explorer shows."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from called_commands import EXAMPLE, completed, document_of, refused
from edgeflare.record.atomic_file import write_atomically
from graph_writer import GraphWriter

if TYPE_CHECKING:
    from browsing import Browser

pytestmark = pytest.mark.slow

Document = dict[str, Any]

SECONDS = 300
"""Until a server or a page counts as hung."""

TABLE = """
return [...document.querySelectorAll("table.results tbody tr")].map(
  (row) => [...row.cells].map((cell) => [cell.innerText.trim(), cell.style.backgroundColor]));
"""
SETS = """
return [...document.querySelectorAll(".index-row")].map(
  (row) => [row.querySelector(".run-name").innerText, row.classList.contains("selected")]);
"""


@dataclass(frozen=True)
class Overlaid:
    """A run whose findings have overlays, and what was said of them."""

    run: Path
    out: str

    def finding(self) -> Document:
        explained = document_of(self.run, "explain.json")
        found: Document = min(explained["findings"].values(), key=lambda one: int(one["seed_id"]))
        return found

    def folder(self) -> Path:
        return self.run / "explain" / f"{self.finding()['seed_id']:06d}.model-explorer"

    def command(self) -> str:
        (command,) = re.findall("`(model-explorer .*)` shows", self.out)
        return str(command)


@pytest.fixture(scope="module")
def overlaid(tmp_path_factory: pytest.TempPathFactory) -> Overlaid:
    run = tmp_path_factory.mktemp("an overlaid") / "run"
    options = ("--find", "kernel", "--device", "emulated-builtin", "--seed-ids", "11")
    effort = ("--max-queries", "700", "--shrink", "0", "--fail-on", "none")
    completed("search", EXAMPLE, *options, *effort, "--out", run)
    said = completed("explain", run, "--model-explorer")
    return Overlaid(run, said.out)


@pytest.fixture
def copied(overlaid: Overlaid, tmp_path: Path) -> Overlaid:
    """The same, for the test to write into."""
    return Overlaid(Path(shutil.copytree(overlaid.run, tmp_path / "run")), overlaid.out)


def results(file: Path) -> Document:
    (one,) = json.loads(file.read_bytes()).values()
    read: Document = one["results"]
    return read


def test_a_finding_has_the_figures_of_explain_json(overlaid: Overlaid) -> None:
    finding = overlaid.finding()
    assert finding["verdict"]["name"] == "kernel"
    layers = finding["device_and_twin"]["layers"]
    total = results(overlaid.folder() / "1-total.json")
    for layer in layers:
        wanted = layer["total"]["max_error_steps"] or 0
        assert total[str(layer["operator_index"])]["value"] == wanted
    onset = results(overlaid.folder() / "6-verdict.json")
    assert [key for key, one in onset.items() if "onset" in one["value"]] == [
        str(finding["device_and_twin"]["onset"]["operator_index"])
    ]


def test_overlays_follow_the_explanations(copied: Overlaid) -> None:
    seed_id, folder = copied.finding()["seed_id"], copied.folder()
    write_atomically(folder / "1-total.json", b"of an earlier explanation")
    write_atomically(folder / "5-margin-share.json", b"likewise")
    completed("explain", copied.run, seed_id)
    assert results(folder / "1-total.json")
    assert not (folder / "5-margin-share.json").exists()  # there is no layer with a share
    shutil.rmtree(folder)
    said = completed("explain", copied.run, seed_id)
    assert "model-explorer" not in said.out
    assert not folder.exists()


def test_a_place_that_is_taken_is_one_line_before_anything_is_asked(
    copied: Overlaid, tmp_path: Path
) -> None:
    before = (copied.run / "explain.json").read_bytes()
    shutil.rmtree(copied.folder())
    copied.folder().touch()
    assert "move it away" in refused("explain", copied.run, "--model-explorer")
    copied.folder().unlink()
    copied.folder().symlink_to(tmp_path)
    assert "outside of it" in refused("explain", copied.run, "--model-explorer")
    assert (copied.run / "explain.json").read_bytes() == before


@contextmanager
def served(command: str) -> Iterator[str]:
    """Run a command of `explain` on loopback, and yield the address that it names."""
    program = Path(sys.executable).parent / "model-explorer"
    if not program.exists():
        pytest.skip("needs the extra model-explorer")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        # It looks for newer versions of itself: that is refused at once.
        **dict.fromkeys(("HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9"),
        **dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9"),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
    }
    options = f"--host=127.0.0.1 --port={port} --no_open_in_browser"
    server = subprocess.Popen(
        ["bash", "-c", f"exec {command} {options}"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        said = []
        for line in server.stdout:
            said.append(line)
            if line.startswith("http://127.0.0.1"):
                yield line.strip()
                return
        pytest.fail("".join(said))
    finally:
        server.terminate()
        server.communicate(timeout=SECONDS)


@contextmanager
def shown(browser: Browser, command: str) -> Iterator[list[list[list[str]]]]:
    """Yield the rows of the table of nodes that Model Explorer shows: texts and colours."""
    with served(command) as address:
        browser.command("Network.enable")
        browser.command("Network.setBlockedURLs", urls=["https://*"])  # fonts
        try:
            browser.driver.get(address)
            WebDriverWait(browser.driver, SECONDS).until(lambda _: loaded(browser))
            yield browser.run(TABLE)
        finally:
            browser.command("Network.setBlockedURLs", urls=[])
            browser.driver.get("about:blank")


def loaded(browser: Browser) -> bool:
    """Whether each set of node data that was asked for has a value in the table."""
    rows, sets = browser.run(TABLE), browser.run(SETS)
    columns = [
        {text for row in rows for text, _ in row[place : place + 1]} - {"-"}
        for place in range(2, 2 + len(sets))
    ]
    return bool(sets) and all(columns)


@pytest.mark.browser
@pytest.mark.model_explorer
def test_model_explorer_shows_the_overlay(overlaid: Overlaid, browser: Browser) -> None:
    finding = overlaid.finding()
    layers = finding["device_and_twin"]["layers"]
    onset = finding["device_and_twin"]["onset"]["operator_index"]
    with shown(browser, overlaid.command()) as rows:
        names = browser.run(SETS)
        assert [name.split(":")[0].split(" of ")[0] for name, _ in names[:-1]] == [
            "total", "own", "new share", "residual",
        ]  # fmt: skip
        seed = f"(seed {finding['seed_id']})"
        assert names[-1] == [f"kernel (delegate) on emulated-builtin {seed}", True]
        of_layers = [row for row in rows if row[1][0] not in ("GraphInputs", "GraphOutputs")]
        assert [row[1][0].upper() for row in of_layers] == [layer["name"] for layer in layers]
        totals = [row[2][0] for row in of_layers]
        assert totals == [f"{layer['total']['max_error_steps'] or 0:g}" for layer in layers]
        assert of_layers[onset][-1] == ["kernel (delegate); onset", "rgb(180, 83, 26)"]
        marked = [row for row in of_layers if row[-1][1] == "rgb(180, 83, 26)"]
        assert len(marked) == 1


@pytest.mark.browser
@pytest.mark.model_explorer
def test_a_key_that_names_a_tensor_is_that_tensors_node(tmp_path: Path, browser: Browser) -> None:
    graph = GraphWriter()
    x, first, second = (graph.tensor(name, (1, 3), "FLOAT32") for name in ("x", "1", "0"))
    graph.operator("LOGISTIC", [x], [first], None)
    graph.operator("TANH", [first], [second], None)
    model = graph.save(tmp_path / "model.tflite", [x], [second])
    data = {"main": {"results": {"1": {"value": "of the tensor named 1"}}}}
    (tmp_path / "data.json").write_text(json.dumps(data))
    command = f"model-explorer {model} --node_data_paths={tmp_path / 'data.json'}"
    with shown(browser, command) as rows:
        assert {row[1][0]: row[2][0] for row in rows} == {
            "GraphInputs": "-", "logistic": "of the tensor named 1", "tanh": "-",
            "GraphOutputs": "-",
        }  # fmt: skip
