"""Tests of edgeflare.conform.record.stored_model: what is stored is read back as what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformed_runs import addition, finding_entry
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.drafts.draft_json import draft_to_json
from edgeflare.conform.drafts.uniform_drawing import UniformDrawing
from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare.conform.operators.known_operators import known_operators
from edgeflare.conform.record.finding_files import store_finding
from edgeflare.conform.record.stored_model import StoredModel, stored_model
from edgeflare.conform.rounds.posed_draft import PosedDraft, posed
from edgeflare.run.run_directory import RunDirectory


def stored_again(draft: Draft, folder: Path) -> StoredModel:
    whole = posed(draft, {}).whole
    directory = RunDirectory(folder)
    name = store_finding(directory, 1, whole, {}, ())
    smallest = {"file": name, "rows": whole.rows, "operators": draft_to_json(draft)}
    return stored_model(directory, {"smallest": smallest})


@pytest.mark.slow
def test_a_model_of_each_operator_and_type_is_read_back_as_it_was(tmp_path: Path) -> None:
    cells = chosen_cells((), ())
    drawing = UniformDrawing(Coverage(cells), np.random.default_rng(7))
    seen = set()
    for draft in drawing.ask(len(cells)):
        back = stored_again(draft, tmp_path)
        (node,), (was,) = back.draft.nodes, draft.nodes
        (graph,) = back.model.alone
        assert (node.operator, node.type) == (was.operator, was.type)
        before = known_operators()[was.operator].read(posed(draft, {}).model.graph)
        assert node.configuration == before.configuration
        for one, other in zip(graph.values, posed(draft, {}).model.graph.values, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert (one.values is None) == (other.values is None)
        given = zip(back.operands[0], posed(draft, {}).operands[0], strict=True)
        assert all(one.tobytes() == other.tobytes() for one, other in given)
        seen.add(node.cell)
    assert len(seen) > len(cells) * 0.9


def test_several_operators_are_read_back_with_who_feeds_whom(tmp_path: Path) -> None:
    first = DraftNode("RELU", "float32", {"shape": (3, 4)}, 1, (-1,))
    second = DraftNode("NEG", "float32", {"shape": (3, 4)}, 2, (0,))
    back = stored_again(Draft((first, second)), tmp_path)
    assert [node.sources for node in back.draft.nodes] == [(-1,), (0,)]
    assert graph_file(back.model.graph) == back.files.model
    whole = PosedDraft(back.draft, back.model, back.operands).whole
    assert [one.tobytes() for one in whole.operands] == [
        one.tobytes() for one in back.files.operands
    ]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run with the files of one finding."""
    directory = RunDirectory(tmp_path)
    store_finding(directory, 1, posed(Draft((addition(),)), {}).whole, {}, ())
    return directory


def test_another_model_than_the_document_says_is_refused(
    run: RunDirectory, refusal: Callable[..., str]
) -> None:
    finding = finding_entry()
    assert stored_model(run, finding).draft.nodes[0].cell == ("ADD", "uint8")
    finding["smallest"]["rows"] = 3
    assert "is not what the arrays beside it were stored for" in refusal(stored_model, run, finding)
    other = finding_entry()
    other["smallest"]["operators"][0]["operator"] = "MUL"
    assert "000001.tflite is not what" in refusal(stored_model, run, other)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.unlink(), "are gone or damaged: run `edgeflare conform` again"),
        (lambda path: path.write_bytes(path.read_bytes()[:40]), "000001.tflite"),
        (lambda path: path.with_suffix(".npz").write_bytes(b"PK"), "gone or damaged"),
        (lambda path: path.with_suffix(".npz").unlink(), "gone or damaged"),
    ],
    ids=["no model", "half a model", "no arrays in it", "no arrays"],
)
def test_damaged_files_are_one_line(
    run: RunDirectory, refusal: Callable[..., str], harm: Callable[[Path], Any], said: str
) -> None:
    harm(run.path / "findings" / "000001.tflite")
    assert said in refusal(stored_model, run, finding_entry())


@pytest.mark.parametrize("file", ["../one.tflite", "/etc/passwd"])
def test_no_file_outside_of_the_run_is_read(
    run: RunDirectory, refusal: Callable[..., str], file: str
) -> None:
    finding = finding_entry()
    finding["smallest"]["file"] = file
    assert "outside of it" in refusal(stored_model, run, finding)
