"""Graphs that take turns with themselves in other shapes, and with a second signature."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from conformed_runs import constructed_conformance, plain
from conforming import ExactArm, a_header
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.draft import NodeGraphs
from edgeflare.conform.drafts.file_operators import file_parts
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel, Turns
from edgeflare.conform.execution.model_opener import HOST_KERNELS, HostOpener
from edgeflare.conform.execution.packing_arm import PackingArm, run_padded
from edgeflare.conform.finding_archive import export_finding
from edgeflare.conform.finding_replay import retried_findings
from edgeflare.conform.graph_file import signatures_file
from edgeflare.conform.graphs.failing_graphs import FailingGraph
from edgeflare.conform.graphs.graph_drawing import GraphDrawing
from edgeflare.conform.graphs.graph_findings import GraphFindings
from edgeflare.conform.graphs.graph_rounds import GraphRounds
from edgeflare.conform.graphs.graph_turns import fall_in_parts, taking_turns, turn_pairs
from edgeflare.conform.graphs.graph_verdict import JudgedGraph, judge_graphs
from edgeflare.conform.graphs.operator_variants import OperatorVariants
from edgeflare.conform.graphs.random_graphs import RandomGraphs
from edgeflare.conform.operator_graph import SHARED_NAME, GraphNode, GraphValue, OperatorGraph
from edgeflare.conform.record.conform_document import ConformDocument
from edgeflare.conform.record.conform_finding import ConformFinding
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.record.finding_files import stored_model
from edgeflare.models.tflite_file import read_model
from edgeflare.record.json_types import plain_json
from edgeflare.run.run_directory import RunDirectory
from reproductions import reproduce, unpacked

TENSOR = GraphValue("float32", (2, 3))
CELLS = chosen_cells(("ADD", "CONV_2D", "RESHAPE", "SOFTMAX", "SUM"), ("float32",))
BOTH: tuple[Turns, Turns] = ("shapes", "signatures")


def _posed(nodes: Sequence[GraphNode], *values: GraphValue) -> PosedModel:
    graph = OperatorGraph(values, tuple(nodes), (0,), nodes[-1].outputs)
    rows = np.arange(2 * values[0].size, dtype=np.float32).reshape(2, *values[0].shape)
    return PosedModel(graph, (rows,))


def _summed() -> PosedModel:
    """NEG, a RESHAPE to a fixed shape, and a SUM of the columns."""
    flat, axes = GraphValue("float32", (6, 1)), GraphValue("int32", (1,)).constant(np.array([1]))
    nodes = (
        GraphNode("NEG", (0,), (1,)),
        GraphNode("RESHAPE", (1,), (2,), {"newShape": (6, 1)}),
        GraphNode("SUM", (2, 3), (4,), {"keepDims": False}),
    )
    return _posed(nodes, TENSOR, TENSOR, flat, axes, GraphValue("float32", (6,)))


def test_an_input_and_all_that_follows_become_longer() -> None:
    pair = taking_turns(_summed(), "shapes")
    assert pair is not None
    assert pair.other is not None
    assert [value.shape for value in pair.other.graph.values] == [
        (6, 3),
        (6, 3),
        (18, 1),
        (1,),
        (18,),
    ]
    # The shape of the file follows from what it is given.
    assert pair.graph.nodes == pair.other.graph.nodes
    assert pair.graph.nodes[1].options["newShape"] == (-1, 1)
    own, other = pair.operands[0], pair.other.operands[0]
    assert np.array_equal(other[1], np.concatenate([own[1], own[0], own[1]]))
    assert turn_pairs(_summed(), BOTH)["signatures"].other is not None


def test_the_height_becomes_longer_where_the_batch_cannot() -> None:
    image, squeezed = GraphValue("float32", (1, 4, 2)), GraphValue("float32", (4, 2))
    node = GraphNode("SQUEEZE", (0,), (1,), {"squeezeDims": (0,)})
    pair = taking_turns(_posed([node], image, squeezed), "shapes")
    assert pair is not None
    assert pair.other is not None
    assert [value.shape for value in pair.other.graph.values] == [(1, 12, 2), (12, 2)]


def test_what_has_one_shape_takes_turns_with_itself_alone() -> None:
    fixed = GraphValue("float32", (2, 3)).constant(np.ones((2, 3), np.float32))
    add = GraphNode("ADD", (0, 1), (2,), {"fusedActivationFunction": "NONE"})
    named = GraphNode("READ_VARIABLE", (0,), (1,), {SHARED_NAME: "variable"})
    for model in (_posed([add], TENSOR, fixed, TENSOR), _posed([named], TENSOR, TENSOR)):
        assert [*turn_pairs(model, BOTH)] == ["signatures"]
        pair = taking_turns(model, "signatures")
        assert pair is not None
        assert pair.other is not None
        assert pair.other.graph is model.graph
        assert np.array_equal(pair.other.operands[0][1], model.operands[0][0])
    state = GraphValue("float32", (2, 3)).state()
    assert not turn_pairs(_posed([add], TENSOR, state, TENSOR), BOTH)


@pytest.fixture(scope="module")
def host() -> Iterator[list[PackingArm]]:
    """The host's kernel sets."""
    arms = [PackingArm(HostOpener(kernels)) for kernels in HOST_KERNELS]
    yield arms
    for one in arms:
        one.close()


@pytest.mark.slow
def test_kernels_answer_in_turn_as_opened_anew(host: Sequence[PackingArm]) -> None:
    cells = chosen_cells(("CONV_2D", "FULLY_CONNECTED", "READ_VARIABLE", "RESHAPE", "SUB", "TANH"))
    models = GraphDrawing(cells, np.random.default_rng(0)).ask(60)
    assert sum("shapes" in turn_pairs(model, BOTH) for model in models) > 30
    for arm in host:
        for turns in BOTH:
            pairs = [pair for model in models if (pair := taking_turns(model, turns)) is not None]
            others = [pair.other for pair in pairs if pair.other is not None]
            in_turn = arm.taking_turns(turns)
            assert in_turn is not None
            found = [answer[arm.name] for answer in run_padded([in_turn], pairs)]
            own, other = ([a[arm.name] for a in run_padded([arm], m)] for m in (pairs, others))
            for answers in zip(found, own, other, strict=True):
                if any(answer.failure is not None for answer in answers[1:]):
                    continue
                turned, first, second = ([v.tobytes() for v in a.outputs] for a in answers)
                assert turned == [*first, *second, *first]


class _Stale(ExactArm):
    """A device whose SUM keeps what it has computed of the shapes at first."""

    turns: Turns = "shapes"

    def taking_turns(self, turns: Turns) -> ExactArm | None:
        arm = super().taking_turns(turns)
        return _StaleInTurn(self.name, arm) if turns == self.turns and arm is not None else arm


class _StaleInTurn(ExactArm):
    def __init__(self, name: str, sound: ExactArm) -> None:
        super().__init__(name)
        self.sound = sound

    def _answer(self, model: PosedModel) -> ModelAnswer:
        (answer,) = self.sound.run([model])
        count = len(model.graph.outputs)
        if not any(node.operator == "SUM" for node in model.graph.nodes):
            return answer
        stale = (-1 - values for values in answer.outputs[count : 2 * count])
        return ModelAnswer((*answer.outputs[:count], *stale, *answer.outputs[2 * count :]))


class _StaleSignature(_Stale):
    """A device whose SUM takes the second signature for the first."""

    turns: Turns = "signatures"


class _StalePart(_Stale):
    """A device whose SUM keeps its axes, where a signature before has the same buffer of them."""

    turns: Turns = "parts"

    def taking_turns(self, turns: Turns) -> ExactArm | None:
        arm = ExactArm.taking_turns(self, turns)
        return _StaleBuffer(self.name, arm) if turns == "parts" and arm is not None else arm


class _StaleBuffer(_StaleInTurn):
    def _answer(self, model: PosedModel) -> ModelAnswer:
        assert model.other is not None
        axes = [
            {id(each.values[node.inputs[1]].values) for node in each.nodes if len(node.inputs) > 1}
            for each in (model.graph, model.other.graph)
        ]
        return super()._answer(model) if axes[0] & axes[1] else self.sound.run([model])[0]


def _two_graphs() -> PosedModel:
    """NEG and a SUM of the columns; ABS, a SUM of the columns by the same axes, and EXP."""
    axes = GraphValue("int32", (1,)).constant(np.array([1]))
    summed = GraphValue("float32", (2,))
    nodes = (
        GraphNode("NEG", (0,), (1,)),
        GraphNode("SUM", (1, 2), (3,), {"keepDims": False}),
        GraphNode("ABS", (4,), (5,)),
        GraphNode("SUM", (5, 2), (6,), {"keepDims": False}),
        GraphNode("EXP", (6,), (7,)),
    )
    values = (TENSOR, TENSOR, axes, summed, TENSOR, TENSOR, summed, summed)
    rows = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 2, 3)
    return PosedModel(OperatorGraph(values, nodes, (0, 4), (3, 6, 7)), (rows, rows[::-1].copy()))


def test_a_graph_that_falls_in_parts_has_a_signature_for_each() -> None:
    model = _two_graphs()
    assert fall_in_parts(model.graph)
    assert not fall_in_parts(_summed().graph)
    pair = turn_pairs(model, (*BOTH, "parts"))["parts"]
    assert pair.other is not None
    names = [[node.operator for node in each.graph.nodes] for each in (pair, pair.other)]
    assert names == [["NEG", "SUM"], ["ABS", "SUM", "EXP"]]
    content = signatures_file([pair.graph, pair.other.graph])
    buffers = [
        [tensor.buffer for tensor in part.tensors if tensor.buffer]
        for part in read_model(content).subgraphs
    ]
    assert buffers[0] == buffers[1]
    assert len(buffers[0]) == 1
    again = file_parts(content, "it")
    assert [node.operator for node in again.nodes] == [*names[0], *names[1]]
    assert again.nodes[1].inputs[1] == again.nodes[3].inputs[1]
    assert fall_in_parts(again)


def test_two_graphs_are_drawn_that_share_constants() -> None:
    rng, graphs = np.random.default_rng(0), NodeGraphs()
    ways = OperatorVariants(rng, graphs)
    variants = {cell: tuple(ways.of(cell)) for cell in CELLS}
    random = RandomGraphs(rng, graphs, CELLS, variants)
    (convolution,) = (each for cell in CELLS if cell[0] == "CONV_2D" for each in variants[cell])
    drawn = [found for _ in range(12) if (found := random.draw_two(convolution)) is not None]
    pairs = [pair for _, model in drawn if (pair := taking_turns(model, "parts")) is not None]
    assert len(pairs) >= 8
    for pair in pairs:
        assert pair.other is not None
        arrays = (
            {id(value.values) for value in each.graph.values if value.values is not None}
            for each in (pair, pair.other)
        )
        assert len(set[int].intersection(*arrays)) >= 2  # weights and biases


def _found(arms: Sequence[KernelArm], folder: Path, model: PosedModel) -> ConformFinding:
    (judged,) = judge_graphs([model], arms)
    assert judged.judgement is not None
    failing = FailingGraph(model, judged.judgement, judged.invocation)
    findings = GraphFindings([failing], arms)
    findings.shrink(True, lambda: None, lambda: False)
    (found,) = findings.stored([1], RunDirectory(folder), ())
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "model", "name", "told"),
    [
        (_Stale(), _summed(), "SUM", ("invoked in two shapes in turn",)),
        (_StaleSignature(), _summed(), "SUM", ("invoked by two signatures in turn",)),
        (
            *(_StalePart(), _two_graphs(), "SUM then SUM"),
            ("a constant is read by several", "invoked by a signature for each part in turn"),
        ),
    ],
)
def test_what_is_kept_from_turn_to_turn_is_found_tried_again_and_exported(
    device: ExactArm, model: PosedModel, name: str, told: tuple[str, ...], tmp_path: Path
) -> None:
    arms = (device, ExactArm("xnnpack"), ExactArm("builtin"))
    found = _found(arms, tmp_path, model)
    assert (found.operator, found.arrangement, found.smallest.rows) == (name, told, 1)
    assert (found.judgement.verdict, found.counts) == ("device", True)
    stored = stored_model(RunDirectory(tmp_path), found.entry())
    again, mended = (
        retried_findings([stored], some)[0] for some in (arms, (ExactArm(), *arms[1:]))
    )
    assert (again.outcome, mended.outcome) == ("still", "mended")
    told_of = plain(constructed_conformance()) | {"findings": [plain(found.entry())]}
    document = msgspec.convert(told_of, ConformDocument)
    export_finding(RunDirectory(tmp_path), document, 1, tmp_path / "one.zip")
    shown = reproduce(unpacked(tmp_path / "one.zip", tmp_path / "one"))
    # The runtime here does in turn what it does opened anew.
    wrong = re.findall(r"result \d: (\d+) of \d+ values are wrong here, (\d+) when", shown.stdout)
    assert [here for here, _ in wrong] == ["0"] * 3
    assert [when == "0" for _, when in wrong] == [True, False, True]
    assert shown.returncode == 1


class _Settled(ExactArm):
    """A device that keeps the shapes and the signature in which a model was opened."""

    def taking_turns(self, turns: Turns) -> ExactArm | None:
        del turns
        return None


@pytest.mark.slow
@pytest.mark.parametrize(("device", "some"), [(ExactArm(), True), (_Settled(), False)])
def test_some_graphs_take_turns_where_kernels_can(
    device: ExactArm, some: bool, tmp_path: Path
) -> None:
    journal = ConformJournal.create(tmp_path / "conform.db", plain_json(a_header(CELLS)))
    arms = (device, ExactArm("xnnpack"))
    rounds = GraphRounds(arms, GraphDrawing(CELLS, np.random.default_rng(0)), journal)
    for _ in range(2):
        rounds.draw(40, _Spent())
    tried = rounds.tried
    assert (0 < tried.in_turn < tried.tried) if some else tried.in_turn == 0
    again = GraphRounds((_Settled(), arms[1]), rounds.drawing, journal)
    assert again.kept
    journal.close()


class _Spent:
    """A clock that stands."""

    spent = 1.0

    def note(self) -> None:
        """Do nothing."""


def test_what_fails_by_itself_takes_no_turns() -> None:
    class Wrong(_Stale):
        def _answer(self, model: PosedModel) -> ModelAnswer:
            answer = super()._answer(model)
            if len(model.graph.nodes) < 2:
                return answer
            return ModelAnswer(tuple(-1 - values for values in answer.outputs))

    (judged,) = judge_graphs([_summed()], (Wrong(), ExactArm("xnnpack")))
    assert isinstance(judged, JudgedGraph)
    assert (judged.fails, judged.invocation) == (True, "")
