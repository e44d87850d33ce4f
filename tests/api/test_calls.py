"""Commands called from Python: what they give, and what they refuse."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from brief_commands import brief_checks
from called_commands import EXAMPLES
from edgeflare.api.check import CheckResult, check
from edgeflare.api.layers import layers
from edgeflare.api.search import SearchResult, search
from edgeflare.diagnose.layers.layers_document import load_layers
from edgeflare.errors import UserError
from edgeflare.release.check_document import check_bytes
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory

pytestmark = pytest.mark.slow

EXAMPLE = EXAMPLES / "fashion_lenet4"


@pytest.fixture(scope="module")
def standard_error() -> io.StringIO:
    """What the check says while it runs."""
    return io.StringIO()


@pytest.fixture(scope="module")
def checked(
    tmp_path_factory: pytest.TempPathFactory, standard_error: io.StringIO
) -> Iterator[CheckResult]:
    """A check of two models that have no `pair.toml`."""
    folder = tmp_path_factory.mktemp("checks")
    models = EXAMPLE / "original.tflite", EXAMPLE / "compressed.tflite"
    with brief_checks():
        with redirect_stderr(standard_error):
            result = check(
                *models, inputs=EXAMPLE / "seeds.npz", limit=10, near=False, out=folder / "check"
            )
        yield result


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> SearchResult:
    folder = tmp_path_factory.mktemp("searches") / "run"
    return search(
        EXAMPLE, first=2, total_queries=300, within=None, shrink=0, out=folder, progress=False
    )


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_check_gives_its_document_its_gates_and_a_pair_of_bare_models(
    checked: CheckResult,
) -> None:
    assert (checked.path / "check.json").read_bytes() == check_bytes(checked.document)
    assert checked.may_ship == checked.document.passes
    gates = rows(checked.csv())
    assert [(gate["gate"], gate["state"]) for gate in gates] == [
        (gate.name, gate.state) for gate in checked.document.gates
    ]
    drop = next(gate for gate in gates if gate["gate"] == "accuracy-drop")
    assert float(drop["low"]) <= float(drop["seen"]) <= float(drop["high"])
    assert (checked.path / "pair.toml").is_file()
    assert (checked.path / "check.html").is_file()


def test_a_check_says_what_its_phases_cost_and_what_the_answers_come_to(
    checked: CheckResult, standard_error: io.StringIO
) -> None:
    said = standard_error.getvalue()
    assert "by the answers alone: " in said
    assert re.search(r"^answers of emulated-builtin: about .+, at most ", said, re.MULTILINE)


def test_a_notebook_shows_a_part_of_a_page(checked: CheckResult) -> None:
    shown = checked._repr_html_()
    assert checked.page().lead in shown.replace("&#39;", "'")
    assert "<html" not in shown
    assert shown.count("<details open>") == 1
    assert f"edgeflare report {checked.path} --html" in shown
    assert str(checked.path) in repr(checked)
    assert len(repr(checked)) < 500


def test_a_search_gives_what_was_found_and_goes_on(searched: SearchResult) -> None:
    assert load_document(RunDirectory(searched.path)) == searched.document
    found = {entry.seed_id for entry in searched.deviations}
    assert {int(row["seed_id"]) for row in rows(searched.csv())} == found != set()
    again = search(
        EXAMPLE,
        first=2,
        total_queries=300,
        within=None,
        shrink=0,
        out=searched.path,
        resume=True,
        progress=False,
    )
    assert again.document.findings == searched.document.findings


def test_a_run_that_is_there_is_not_written_over(searched: SearchResult) -> None:
    with pytest.raises(UserError, match="overwrite=True"):
        search(EXAMPLE, first=2, total_queries=300, out=searched.path, progress=False)


@pytest.mark.parametrize("call", [search, layers])
def test_a_pair_that_is_not_there_is_refused_without_options_of_commands(
    call: Callable[..., object], tmp_path: Path
) -> None:
    with pytest.raises(
        UserError, match=r"no pair folder .*: give a folder that holds a pair\.toml$"
    ):
        call(tmp_path / "lost", progress=False)


def test_a_layer_table_has_a_row_for_each_layer(tmp_path: Path) -> None:
    table = layers(EXAMPLE, limit=2, sensitivity_inputs=1, out=tmp_path / "table", progress=False)
    assert load_layers(table.path / "layers.json") == table.document
    assert len(rows(table.csv())) == len(table.document.layers)
    with pytest.raises(UserError, match="limit=0: expected a whole number of 1 or more"):
        layers(EXAMPLE, limit=0, out=tmp_path / "none")


def test_progress_is_shown_on_standard_error_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layers(EXAMPLE, limit=2, sensitivity_inputs=0, out=tmp_path / "table")
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("layers 2/2")
    assert said.out == ""


def test_without_pandas_a_data_frame_says_what_to_install(
    searched: SearchResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pip install pandas"):
        searched.to_dataframe()
