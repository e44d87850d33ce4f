"""Documents and the files of findings: read back as they were, and damaged ones refused."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from conformed_runs import (
    addition,
    conformance_fields,
    conformed_run,
    constructed_conformance,
    finding_entry,
    finding_fields,
)
from drafting import chain
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import Draft, draft_to_json
from edgeflare.conform.drafts.drawing import UniformDrawing
from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailure
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_document import (
    FoundFault,
    read_conformance,
)
from edgeflare.conform.record.conform_finding import kept_error
from edgeflare.conform.record.finding_files import (
    StoredModel,
    load_finding,
    store_finding,
    stored_model,
)
from edgeflare.conform.rounds.draft_verdict import posed
from edgeflare.conform.specification.exact_answer import steps
from edgeflare.run.run_directory import RunDirectory, holds_conformance


def test_a_document_comes_back_as_it_was(tmp_path: Path) -> None:
    directory = conformed_run(tmp_path)
    assert holds_conformance(directory)
    assert read_conformance(directory) == constructed_conformance()


def test_a_run_that_was_cut_off_says_how_to_go_on(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    assert not holds_conformance(RunDirectory(tmp_path))
    (tmp_path / "conform.db").touch()
    assert holds_conformance(RunDirectory(tmp_path))
    said = refusal(read_conformance, RunDirectory(tmp_path))
    assert f"--out {tmp_path} --resume" in said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"findings": [finding_fields(verdict="right")]}, "findings[0].verdict"),
        ({"stopped_by": "boredom"}, "stopped_by"),
        ({"more": 1}, "unknown key"),
        ({"schema": "edgeflare.run/v1"}, "is not of the schema edgeflare.conform/v1"),
    ],
)
def test_what_does_not_keep_to_the_schema_is_refused(
    tmp_path: Path, refusal: Callable[..., str], changed: dict[str, Any], said: str
) -> None:
    directory = conformed_run(tmp_path, conformance_fields() | changed)
    assert said in refusal(read_conformance, directory)


@pytest.mark.parametrize(
    ("error", "kept"),
    [(1.5, 1.5), (2.0**53 - 1, 2.0**53 - 1), (7e46, None), (inf, None), (nan, None)],
)
def test_the_largest_error_is_one_that_readers_of_json_keep(
    error: float, kept: float | None
) -> None:
    assert kept_error(error) == kept


def test_all_arrays_come_back_as_they_were_and_the_same_are_the_same_bytes(tmp_path: Path) -> None:
    model = posed(Draft((addition(),)), {}).whole
    outputs: tuple[Values, ...] = (
        np.arange(4, dtype=np.uint8),
        np.array([[np.nan, -0.0]], np.float32),
    )
    answers = {
        "device": ModelAnswer(outputs),
        "xnnpack": ModelAnswer(failure=RunFailure("crash", "SIGSEGV")),
    }
    directory = RunDirectory(tmp_path)
    name = store_finding(directory, 12, model, answers, [steps(np.linspace(0, 1, 4))])
    assert name == "findings/000012.tflite"
    back = load_finding(directory, name)
    assert back.model == (tmp_path / name).read_bytes()
    assert [one.tobytes() for one in back.operands] == [one.tobytes() for one in model.operands]
    for one, other in zip(back.answers("device"), outputs, strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    assert back.answers("xnnpack") == ()
    assert back.answers("exact")[0].tolist() == np.linspace(0, 1, 4).tolist()
    for folder in ("one", "other"):
        store_finding(RunDirectory(tmp_path / folder), 1, model, {}, ())
    for suffix in ("tflite", "npz"):
        files = (tmp_path / folder / f"findings/000001.{suffix}" for folder in ("one", "other"))
        assert len({file.read_bytes() for file in files}) == 1


def stored_again(draft: Draft, folder: Path) -> StoredModel:
    whole = posed(draft, {}).whole
    directory = RunDirectory(folder)
    name = store_finding(directory, 1, whole, {}, ())
    smallest = {"file": name, "rows": whole.rows, "operators": draft_to_json(draft)}
    return stored_model(directory, of_model(**smallest))


def of_model(**changed: Any) -> FoundFault:
    """A finding whose smallest model is another one."""
    fields = finding_fields()
    fields["smallest"] |= changed
    return msgspec.convert(fields, FoundFault)


@pytest.mark.slow
def test_a_model_of_each_operator_is_read_back_as_it_was(tmp_path: Path) -> None:
    known = enumerate(known_operators().values())
    cells = [(one.operator, one.types[at % len(one.types)]) for at, one in known]
    drawing = UniformDrawing(Coverage(cells), np.random.default_rng(7))
    seen = set()
    for draft in drawing.ask(len(cells)):
        back, one_posed = stored_again(draft, tmp_path), posed(draft, {})
        (node,), (was,) = back.draft.nodes, draft.nodes
        (graph,) = back.model.alone
        assert (node.operator, node.type) == (was.operator, was.type)
        before = known_operators()[was.operator].read(one_posed.model.graph)
        assert node.configuration == before.configuration
        for one, other in zip(graph.values, one_posed.model.graph.values, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert (one.values is None) == (other.values is None)
        given = zip(back.files.operands, one_posed.operands[0], strict=True)
        assert all(one.tobytes() == other.tobytes() for one, other in given)
        seen.add(node.cell)
    assert len(seen) > len(cells) * 0.9


def test_several_operators_are_read_back_with_who_feeds_whom(tmp_path: Path) -> None:
    back = stored_again(chain("RELU", "NEG"), tmp_path)
    assert back.whole.graph == back.model.graph
    assert [node.sources for node in back.draft.nodes] == [(-1,), (0,)]
    assert graph_file(back.model.graph) == back.files.model


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
    said = refusal(stored_model, run, of_model(rows=3))
    assert "is not what the arrays beside it were stored for" in said
    (node,) = finding_fields()["smallest"]["operators"]
    other = of_model(operators=[{**node, "operator": "MUL"}])
    assert "000001.tflite is not what" in refusal(stored_model, run, other)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.unlink(), "are gone or damaged: run `edgeflare conform` again"),
        (lambda path: path.write_bytes(path.read_bytes()[:40]), "000001.tflite"),
        (lambda path: path.with_suffix(".npz").write_bytes(b"PK"), "gone or damaged"),
    ],
    ids=["no model", "half a model", "no arrays in it"],
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
    assert "outside of it" in refusal(stored_model, run, of_model(file=file))
