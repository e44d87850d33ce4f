"""Graphs of operators: drawn, taken apart, judged, shrunk, and gone on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conforming import ExactArm, PlantedFault, a_header
from edgeflare.conform.drafts.cells import Cell, chosen_cells
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.execution.model_opener import HostOpener
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.conform.findings.accepted_findings import AcceptedFinding
from edgeflare.conform.graphs.failing_graphs import FailingGraph
from edgeflare.conform.graphs.graph_arrangement import arrangement
from edgeflare.conform.graphs.graph_drawing import GraphDrawing
from edgeflare.conform.graphs.graph_findings import GraphFindings
from edgeflare.conform.graphs.graph_rounds import GraphRounds
from edgeflare.conform.graphs.graph_trace import GraphTrace, graphs_digest, part_of, traced
from edgeflare.conform.graphs.graph_verdict import JudgedGraph, judge_graphs
from edgeflare.conform.graphs.wrong_part import wrong_part
from edgeflare.conform.operator_graph import GraphNode, GraphValue, OperatorGraph, Quantization
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.verdict.joint_operators import judged_whole
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.errors import UserError
from edgeflare.record.json_types import plain_json
from edgeflare.run.run_directory import RunDirectory

FEW = chosen_cells(("ADD", "MUL", "NEG", "RESHAPE", "SPLIT", "SUM"), ("float32",))
TENSOR = GraphValue("float32", (2, 3))


def _posed(graph: OperatorGraph, seed: int = 0) -> PosedModel:
    rng = np.random.default_rng(seed)
    drawn = (rng.uniform(-4, 4, (2, *graph.values[at].shape)) for at in graph.inputs)
    operands = tuple(
        one.astype(graph.values[at].dtype) for one, at in zip(drawn, graph.inputs, strict=True)
    )
    return PosedModel(graph, operands)


def _views() -> PosedModel:
    """Return a view of a view that SUB writes over, while the first view is read later."""
    axis = GraphValue("int32", (1,)).constant(np.zeros(1, np.int32))
    wide = GraphValue("float32", (1, 2, 3))
    squeeze = {"squeezeDims": (0,)}
    nodes = (
        GraphNode("ABS", (0,), (1,)),
        GraphNode("EXPAND_DIMS", (1, 7), (2,)),
        GraphNode("SQUEEZE", (2,), (3,), squeeze),
        GraphNode("SUB", (3, 8), (4,)),
        GraphNode("SQUEEZE", (2,), (5,), squeeze),
        GraphNode("NEG", (4,), (6,)),
    )
    values = (TENSOR, TENSOR, wide, *[TENSOR] * 4, axis, TENSOR)
    return _posed(OperatorGraph(values, nodes, (0, 8), (5, 6)))


@pytest.fixture(scope="module")
def host() -> Iterator[list[PackingArm]]:
    """The host's built-in kernels as the device, and XNNPACK."""
    arms = [PackingArm(HostOpener("builtin")), PackingArm(HostOpener("xnnpack"))]
    arms[0].name = "device"
    yield arms
    for one in arms:
        one.close()


@pytest.mark.slow
def test_a_view_of_a_view_that_is_written_over_is_found_and_shrunk(
    host: Sequence[PackingArm], tmp_path: Path
) -> None:
    model = _views()
    (judged,) = judge_graphs([model], host)
    assert judged.judgement is not None
    assert (judged.judgement.verdict, judged.taken) == ("device", (True,) * 6)
    findings = GraphFindings([FailingGraph(model, judged.judgement)], host)
    findings.shrink(True, lambda: None, lambda: False)
    (found,) = findings.stored([1], RunDirectory(tmp_path), ())
    assert len(found.smallest.draft.nodes) == 5
    assert "a view of a view" in found.arrangement
    assert "the result of SQUEEZE is read by several" not in found.arrangement


@pytest.mark.slow
def test_a_model_that_is_wrong_as_a_whole_is_cut_to_what_is(
    host: Sequence[PackingArm], tmp_path: Path
) -> None:
    graph = _views().graph
    # Operators before what is wrong, and behind its last result.
    values = [*graph.values, *[TENSOR] * 12]
    before = [GraphNode("ABS", (9 + at,), (10 + at,)) for at in range(5)]
    behind = [GraphNode("NEG", (5 if not at else 14 + at,), (15 + at,)) for at in range(5)]
    first = GraphNode("ABS", (14,), (1,))
    nodes = (*before, first, *graph.nodes[1:], *behind)
    whole = OperatorGraph(tuple(values), nodes, (9, 8), (6, 19))
    journal = ConformJournal.create(tmp_path / "conform.db", plain_json(a_header(FEW)))
    rounds = GraphRounds(host, GraphDrawing(FEW, np.random.default_rng(0)), journal)
    rounds.try_model(whole, None, np.random.default_rng(0), _Spent())
    findings = GraphFindings(rounds.failing, host)
    findings.shrink(True, lambda: None, lambda: False)
    (found,) = findings.stored([1], RunDirectory(tmp_path), ())
    journal.close()
    assert len(whole.nodes) == 16
    assert len(found.smallest.draft.nodes) == 5


@pytest.mark.slow
def test_kernels_without_a_known_fault_are_right(host: Sequence[PackingArm]) -> None:
    cells = chosen_cells(("ADD", "CONV_2D", "MEAN", "RELU", "SPLIT"), ("float32", "int8"))
    drawing = GraphDrawing(cells, np.random.default_rng(3))
    models = drawing.ask(150)
    judged = judge_graphs(models, host)
    assert sum(one.judgement is not None for one in judged) > 140
    assert not any(one.fails for one in judged)


class _Clobbering(ExactArm):
    """A device that writes over the result of an ADD that a SUM reads, if it is an output."""

    def _answer(self, model: PosedModel) -> ModelAnswer:
        answer, graph = super()._answer(model), model.graph
        read = {at for node in graph.nodes if node.operator == "SUM" for at in node.inputs}
        lost = {at for node in graph.nodes if node.operator == "ADD" for at in node.outputs} & read
        outputs = zip(graph.outputs, answer.outputs, strict=True)
        return ModelAnswer(tuple(-one - 1 if at in lost else one for at, one in outputs))


class _Unthreaded(ExactArm):
    """A device whose ADD is wrong on other threads, if its result is read."""

    def on_other_threads(self) -> ExactArm:
        return _Clobbering(self.name)


def test_a_graph_that_is_wrong_on_other_threads_alone_is_found(tmp_path: Path) -> None:
    nodes = (GraphNode("ADD", (0, 1), (2,), {"fusedActivationFunction": "NONE"}),)
    axes = GraphValue("int32", (1,)).constant(np.array([1]))
    total = GraphNode("SUM", (2, 3), (4,), {"keepDims": False})
    values = (TENSOR, TENSOR, TENSOR, axes, GraphValue("float32", (2,)))
    model = _posed(OperatorGraph(values, (*nodes, total), (0, 1), (2, 4)))
    arms = (_Unthreaded(), ExactArm("xnnpack"))
    (judged,) = judge_graphs([model], arms)
    assert judged.judgement is not None
    assert (judged.fails, judged.invocation) == (True, "on another number of threads")
    findings = GraphFindings([FailingGraph(model, judged.judgement, judged.invocation)], arms)
    findings.shrink(True, lambda: None, lambda: False)
    (found,) = findings.stored([1], RunDirectory(tmp_path), ())
    assert "invoked on another number of threads" in found.arrangement


class _Forgetful(ExactArm):
    """A device that resets states between invocations, whatever it is asked."""

    def without_reset(self, rows: int) -> ExactArm:
        del rows
        return self


STATEFUL = chosen_cells(("LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"), ("float32",))


def test_a_state_that_is_lost_between_invocations_is_found(tmp_path: Path) -> None:
    models = GraphDrawing(STATEFUL, np.random.default_rng(0)).ask(12)
    arms = (_Forgetful(), ExactArm("xnnpack"))
    judged = judge_graphs(models, arms)
    failing = [
        FailingGraph(model, one.judgement, one.invocation)
        for model, one in zip(models, judged, strict=True)
        if one.judgement is not None and one.fails
    ]
    assert {one.model.graph.nodes[0].operator for one in failing} == {cell[0] for cell in STATEFUL}
    findings = GraphFindings(failing, arms)
    findings.shrink(True, lambda: None, lambda: False)
    found = findings.stored([1, 2], RunDirectory(tmp_path), ())
    told = "invoked again without a reset of its state"
    assert all(told in one.arrangement for one in found)


@pytest.mark.slow
def test_kernels_keep_states_from_one_invocation_to_the_next(host: Sequence[PackingArm]) -> None:
    models = GraphDrawing(STATEFUL, np.random.default_rng(1)).ask(8)
    judged = judge_graphs(models, host)
    told = {one.invocation for one in judged if one.judgement is not None}
    assert "again without a reset of its state" in told
    assert not any(one.fails for one in judged)


class _Late(ExactArm):
    """A device that reads a variable once it was assigned for the last time."""

    def _answer(self, model: PosedModel) -> ModelAnswer:
        answer, graph = super()._answer(model), model.graph
        variables = [node for node in graph.nodes if node.operator == "READ_VARIABLE"]
        late = {at for node in variables[:-1] for at in node.outputs}
        read = {at for node in graph.nodes for at in node.inputs}
        if not late & (read | set(graph.outputs)):
            return answer
        return ModelAnswer(tuple(1 - one for one in answer.outputs))


@pytest.mark.slow
def test_a_variable_that_is_read_too_late_is_found(tmp_path: Path) -> None:
    arms = (_Late(), ExactArm("xnnpack"))
    cells = chosen_cells(("NEG", "READ_VARIABLE", "TANH"), ("float32",))
    drawing = GraphDrawing(cells, np.random.default_rng(0))
    journal = ConformJournal.create(tmp_path / "conform.db", plain_json(a_header(cells)))
    rounds = GraphRounds(arms, drawing, journal)
    rounds.draw(12, _Spent())
    journal.close()
    findings = GraphFindings(rounds.failing, arms)
    findings.shrink(True, lambda: None, lambda: False)
    (found, *_) = findings.stored(range(1, 9)[: len(findings.counted)], RunDirectory(tmp_path), ())
    assert "a variable is assigned and read twice" in found.arrangement


def test_pairs_find_an_output_that_is_written_over(tmp_path: Path) -> None:
    arms = (_Clobbering(), ExactArm("xnnpack"))
    drawing = GraphDrawing(FEW, np.random.default_rng(0))
    journal = ConformJournal.create(tmp_path / "conform.db", plain_json(a_header(FEW)))
    rounds = GraphRounds(arms, drawing, journal)
    rounds.draw(60, _Spent())
    assert rounds.failing
    assert rounds.tried.tried == 60
    findings = GraphFindings(rounds.failing, arms)
    findings.shrink(True, lambda: None, lambda: False)
    (found,) = findings.stored([1], RunDirectory(tmp_path), ())
    assert found.operator == "ADD then SUM"
    assert found.arrangement[0] == "the result of ADD is read and is an output"
    assert (found.counts, found.smallest.rows) == (True, 1)
    _resumed(tmp_path, journal, rounds)


def _resumed(folder: Path, journal: ConformJournal, before: GraphRounds) -> None:
    """Take a round from the journal, and refuse it where other graphs are drawn."""
    idle = (ExactArm(), ExactArm("xnnpack"))
    again = GraphRounds(idle, GraphDrawing(FEW, np.random.default_rng(0)), journal)
    assert again.kept
    again.draw(60, _Spent())
    assert not idle[0].models
    assert again.verdicts == before.verdicts
    assert [one.said for one in again.failing] == [one.said for one in before.failing]
    other = GraphRounds(idle, GraphDrawing(FEW, np.random.default_rng(1)), journal)
    with pytest.raises(UserError, match="draws other graphs than those of round 0"):
        other.draw(60, _Spent())
    journal.close()


class _Spent:
    """A clock that stands."""

    spent = 1.0

    def note(self) -> None:
        """Do nothing."""


@pytest.mark.slow
def test_what_is_drawn_depends_on_the_generator_and_what_was_told() -> None:
    def drawn(seed: int, *, failing: bool) -> list[str]:
        drawing = GraphDrawing(FEW, np.random.default_rng(seed))
        digests = []
        for _ in range(3):
            models = drawing.ask(50)
            taken = [(not failing,) * len(one.graph.nodes) for one in models]
            drawing.tell([JudgedGraph(None, one) for one in taken])
            digests.append(graphs_digest(models))
        return digests

    assert drawn(0, failing=False) == drawn(0, failing=False)
    assert drawn(0, failing=False)[0] != drawn(1, failing=False)[0]
    assert drawn(0, failing=True)[1:] != drawn(0, failing=False)[1:]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("type_", ["float32", "int8"])
def test_residual_sums_and_concatenations_of_a_tensor_with_itself_are_surely_drawn(
    seed: int, type_: str
) -> None:
    cells = chosen_cells(("ADD", "CONCATENATION", "CONV_2D", "TANH"), (type_,))
    graphs = [one.graph for one in GraphDrawing(cells, np.random.default_rng(seed)).ask(40)]
    joined, summed = set(), set()
    for graph in graphs:
        makers = {at: node for node in graph.nodes for at in node.outputs}
        last = graph.nodes[-1]
        made = [makers[at].operator for at in last.inputs if at in makers]
        if last.operator == "CONCATENATION" and last.inputs[:1] == last.inputs[1:2]:
            joined.update(made)
        one, other = last.inputs[0], last.inputs[-1]
        if last.operator == "ADD" and any(
            read in makers and through in makers[read].inputs
            for read, through in ((one, other), (other, one))
        ):
            values = graph.values[one], graph.values[other]
            assert values[0].shape[0] > 1  # a batch
            if values[0].quantization != values[1].quantization or type_ == "float32":
                summed.update(made)
    assert {"CONV_2D", "TANH"} <= joined
    assert {"CONV_2D", "TANH"} <= summed


def test_parts_are_given_what_the_operators_left_out_answer_alone() -> None:
    model = _views()
    (trace,) = traced([model], ExactArm())
    part = part_of(model, {3, 5}, trace)
    assert part is not None
    assert [one.operator for one in part.graph.nodes] == ["SUB", "NEG"]
    assert (part.graph.inputs, part.graph.outputs) == ((3, 8), (6,))
    assert np.array_equal(part.operands[0], np.abs(model.operands[0]))
    (answer,) = ExactArm().run([part])
    assert np.array_equal(answer.outputs[0], trace.tensors[6])
    assert part_of(model, {5}, GraphTrace({}, {})) is None


SCALED = GraphValue("int8", (2, 3), Quantization((0.5,), 3))


@pytest.mark.parametrize(
    ("nodes", "outputs", "words"),
    [
        ([GraphNode("MUL", (0, 0), (1,))], (1,), ["MUL reads one tensor twice"]),
        ([GraphNode("NEG", (0,), (1,))], (0, 1), ["an input is an output"]),
        ([GraphNode("NEG", (0,), (1,))], (1, 1), ["two outputs are one tensor"]),
        (
            [GraphNode("NEG", (0,), (1,)), GraphNode("ABS", (0,), (2,))],
            (2,),
            ["a result of NEG is read by nothing", "an input is read by several"],
        ),
        (
            [GraphNode("SPLIT", (0,), (1, 2)), GraphNode("ADD", (1, 2), (3,))],
            (3,),
            ["ADD reads two results of one operator"],
        ),
    ],
)
def test_an_arrangement_is_named(
    nodes: Sequence[GraphNode], outputs: tuple[int, ...], words: list[str]
) -> None:
    graph = OperatorGraph((SCALED,) * 4, tuple(nodes), (0,), outputs)
    assert list(arrangement(graph)) == words


def test_one_operator_that_reads_a_tensor_twice_may_not_be_a_step_off(tmp_path: Path) -> None:
    class Squaring(ExactArm):
        def _answer(self, model: PosedModel) -> ModelAnswer:
            answer = super()._answer(model)
            twice = model.graph.nodes[0].inputs == (0, 0)
            return ModelAnswer(tuple(one - twice for one in answer.outputs))

    options = {"fusedActivationFunction": "NONE"}
    graph = OperatorGraph((SCALED, SCALED), (GraphNode("MUL", (0, 0), (1,), options),), (0,), (1,))
    arms = (Squaring(), ExactArm("xnnpack"))
    (judged,) = judge_graphs([_posed(graph)], arms)
    assert judged.judgement is not None
    assert (judged.judgement.verdict, judged.judgement.counted) == ("device", True)
    findings = GraphFindings([FailingGraph(_posed(graph), judged.judgement)], arms)
    findings.shrink(True, lambda: None, lambda: False)
    (found,) = findings.stored([1], RunDirectory(tmp_path), ())
    mul = AcceptedFinding("MUL", "int8", "device", found.key.symptom, "of MUL alone")
    assert findings.stored([1], RunDirectory(tmp_path), [mul])[0].counts
    twice = replace(mul, wired=("MUL reads one tensor twice",), reason="of a square")
    (again,) = findings.stored([1], RunDirectory(tmp_path), [mul, twice])
    assert again.accepted == "of a square"


def test_a_model_is_cut_to_what_is_wrong_together_on_an_input_of_the_users() -> None:
    whole = (*[TENSOR] * 3, GraphValue("float32", (2,)), GraphValue("float32", (2,)))
    axis = GraphValue("int32", (1,)).constant(np.ones(1, np.int32))
    nodes = (
        GraphNode("ABS", (0,), (1,)),
        GraphNode("ADD", (1, 1), (2,), {"fusedActivationFunction": "NONE"}),
        GraphNode("SUM", (2, 5), (3,), {"keepDims": False}),
        GraphNode("NEG", (3,), (4,)),
    )
    model = _posed(OperatorGraph((*whole, axis), nodes, (0,), (2, 4)))
    found = wrong_part(model, (_Clobbering(), ExactArm("xnnpack")), 60)
    assert found is not None
    assert found.key.operator == "ADD then SUM"
    assert "the result of ADD is read and is an output" in found.arrangement
    assert wrong_part(model, (ExactArm(), ExactArm("xnnpack")), 60) is None


def test_a_model_is_run_as_a_whole_on_inputs_of_the_users(tmp_path: Path) -> None:
    arms = (ExactArm(), ExactArm("xnnpack"))
    journal = ConformJournal.create(tmp_path / "conform.db", plain_json(a_header(FEW)))
    rounds = GraphRounds(arms, GraphDrawing(FEW, np.random.default_rng(0)), journal)
    graph = OperatorGraph((TENSOR, TENSOR), (GraphNode("ABS", (0,), (1,)),), (0,), (1,))
    seeds = np.arange(18, dtype=np.float32).reshape(3, *TENSOR.shape)
    for given in (seeds, seeds[:, :1]):  # the others are not of its input's shape
        rounds.try_model(graph, given, np.random.default_rng(0), _Spent())
    journal.close()
    operands = [model.operands[0] for model in arms[0].models]
    assert any(np.array_equal(operand, seeds) for operand in operands)
    assert {operand.shape[1:] for operand in operands} == {TENSOR.shape, (6, 3)}  # in turn
    assert rounds.verdicts == {"right": 2}


@pytest.mark.slow
def test_operators_of_several_results_have_results_with_values() -> None:
    cells = chosen_cells(("ADD", "SPLIT_V"), ("float32",))
    for seed in (4, 8, 18, 20):  # of these the first settings that fit have a result without any
        models = GraphDrawing(cells, np.random.default_rng(seed)).ask(60)
        both = [
            model.graph.nodes[-1].operator
            for model in models
            if model.graph.nodes[0].operator == "SPLIT_V"
            and set(model.graph.nodes[0].outputs[:2]) == set(model.graph.nodes[-1].inputs)
        ]
        assert set(both) == {"ADD"}


class _Unsteady(_Clobbering):
    """A device that once also answers a pair wrongly of which the first result is no output."""

    steady = False

    def _answer(self, model: PosedModel) -> ModelAnswer:
        answer = super()._answer(model)
        if self.steady or len(model.graph.nodes) == 1 or len(model.graph.outputs) > 1:
            return answer
        self.steady = True
        return ModelAnswer(tuple(-1 - rows for rows in answer.outputs))


def test_a_graph_whose_least_part_does_not_fail_again_is_found_as_it_was_drawn(
    tmp_path: Path,
) -> None:
    axis = GraphValue("int32", (1,)).constant(np.ones(1, np.int32))
    row = GraphValue("float32", (2,))
    nodes = (
        GraphNode("ADD", (0, 0), (1,), {"fusedActivationFunction": "NONE"}),
        GraphNode("SUM", (1, 2), (3,), {"keepDims": False}),
    )
    model = _posed(OperatorGraph((TENSOR, TENSOR, axis, row), nodes, (0,), (1, 3)))
    arms = (_Unsteady(), ExactArm("xnnpack"))
    (judged,) = judge_graphs([model], arms)
    assert judged.judgement is not None
    findings = GraphFindings([FailingGraph(model, judged.judgement)], arms)
    findings.shrink(True, lambda: None, lambda: False)
    (found,) = findings.stored([1], RunDirectory(tmp_path), ())
    assert found.operator == "ADD then SUM"
    assert "the result of ADD is read and is an output" in found.arrangement


def test_whole_numbers_without_a_scale_are_held_to_the_operators_one_by_one() -> None:
    plain = GraphValue("int8", (2, 3))
    order = GraphValue("int32", (2,)).constant(np.array([0, 1], np.int32))
    nodes = (GraphNode("TRANSPOSE", (0, 1), (2,)), GraphNode("TRANSPOSE", (2, 1), (3,)))
    model = _posed(OperatorGraph((plain, order, plain, plain), nodes, (0,), (3,)))
    (moved,) = model.operands
    assert judged_whole(model, ModelAnswer((moved,)), (moved,)).verdict == "right"
    assert judged_whole(model, ModelAnswer((moved - 1,)), (moved,)).verdict == "device"


class _Overwriting(_Clobbering):
    """A device on which a graph that fails makes all others wrong that are in its file."""

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        answers, right = super().run(models), ExactArm().run(models)
        fail = [
            any(one.tobytes() != other.tobytes() for one, other in zip(*both, strict=True))
            for both in zip((a.outputs for a in answers), (r.outputs for r in right), strict=True)
        ]
        if not any(fail) or len(models) == 1:
            return answers
        return [ModelAnswer(tuple(-2 - rows for rows in answer.outputs)) for answer in right]


def test_what_is_wrong_beside_a_failing_graph_alone_is_not_taken_for_the_fault(
    tmp_path: Path,
) -> None:
    arms = (_Overwriting(), ExactArm("xnnpack"))
    axis = GraphValue("int32", (1,)).constant(np.ones(1, np.int32))
    nodes = (
        GraphNode("NEG", (0,), (1,)),
        GraphNode("ADD", (1, 1), (2,), {"fusedActivationFunction": "NONE"}),
        GraphNode("SUM", (2, 3), (4,), {"keepDims": False}),
    )
    values = (TENSOR, TENSOR, TENSOR, axis, GraphValue("float32", (2,)))
    model = _posed(OperatorGraph(values, nodes, (0,), (2, 4)))
    (judged,) = judge_graphs([model], arms)
    assert judged.judgement is not None
    failing = FailingGraph(model, judged.judgement, judged.invocation, judged.wrong)
    findings = GraphFindings([failing], arms)
    findings.shrink(True, lambda: None, lambda: False)
    (found,) = findings.stored([1], RunDirectory(tmp_path), ())
    assert found.operator == "ADD then SUM"
    assert found.arrangement == ("the result of ADD is read and is an output",)


def _drawn_in_rounds(
    cells: Sequence[Cell], rounds: int, said: Callable[[OperatorGraph], KernelJudgement]
) -> list[OperatorGraph]:
    """Return graphs that are drawn in rounds of 4, each told what is said of it."""
    drawing, found = GraphDrawing(cells, np.random.default_rng(0)), []
    for _ in range(rounds):
        graphs = [model.graph for model in drawing.ask(4)]
        drawing.tell([JudgedGraph(said(each), (True,) * len(each.nodes)) for each in graphs])
        found += graphs
    return found


def test_an_operator_that_may_not_read_a_tensor_twice_still_reads_two_results_of_one() -> None:
    def squares(graph: OperatorGraph) -> bool:
        return any(
            node.operator == "SUB" and node.inputs[0] == node.inputs[1] for node in graph.nodes
        )

    def said(graph: OperatorGraph) -> KernelJudgement:
        return KernelJudgement("refused" if squares(graph) else "right")

    graphs = _drawn_in_rounds(chosen_cells(("ABS", "SPLIT", "SUB"), ("float32",)), 40, said)
    assert any(map(squares, graphs[:12]))
    assert not any(squares(graph) for graph in graphs if len(graph.nodes) > 2)
    assert any(
        graph.nodes[-1].operator == "SUB"
        and set(graph.nodes[-1].inputs) <= {*graph.nodes[0].outputs}
        for graph in graphs
    )


def test_what_fails_by_a_pair_is_soon_no_longer_drawn_with_a_third_operator() -> None:
    def clobbers(graph: OperatorGraph) -> bool:
        made = {at for node in graph.nodes if node.operator == "RELU" for at in node.outputs}
        return any(node.operator == "TANH" and made & set(node.inputs) for node in graph.nodes)

    def said(graph: OperatorGraph) -> KernelJudgement:
        wrong = KernelJudgement("device", "wrong-values", counted=True)
        return wrong if clobbers(graph) else KernelJudgement("right")

    cells = chosen_cells(("COS", "EXP", "FLOOR", "RELU", "SIN", "SQRT", "TANH"), ("float32",))
    graphs = _drawn_in_rounds(cells, 30, said)
    chains = [graph for graph in graphs if len(graph.outputs) == len(graph.nodes) == 3]
    assert 4 <= sum(map(clobbers, chains)) < 4 + 4


@pytest.mark.parametrize(
    ("size", "told"), [((2, 3), "SLICE keeps the shape of what it reads"), ((2, 2), None)]
)
def test_a_slice_of_all_is_told_from_one_of_a_part(size: tuple[int, ...], told: str | None) -> None:
    begin, wanted = (
        GraphValue("int32", (2,)).constant(np.array(each, np.int32)) for each in ((0, 0), size)
    )
    nodes = (GraphNode("NEG", (0,), (1,)), GraphNode("SLICE", (1, 2, 3), (4,)))
    values = (TENSOR, TENSOR, begin, wanted, GraphValue("float32", size))
    found = arrangement(OperatorGraph(values, nodes, (0,), (1, 4)))
    both = ["the result of NEG is read and is an output", *filter(None, [told])]
    assert list(found) == both


class _Varying(ExactArm):
    """A device whose NEG answers otherwise each time, as a kernel does that reads stray memory."""

    asked = 0

    def _answer(self, model: PosedModel) -> ModelAnswer:
        answer = super()._answer(model)
        if not any(node.operator == "NEG" for node in model.graph.nodes):
            return answer
        self.asked += 1
        return ModelAnswer(tuple(values + self.asked for values in answer.outputs))


def test_of_a_graph_with_an_operator_that_varies_nothing_is_said() -> None:
    nodes = (GraphNode("ABS", (0,), (1,)), GraphNode("NEG", (1,), (2,)))
    model = _posed(OperatorGraph((TENSOR, TENSOR, TENSOR), nodes, (0,), (1, 2)))
    (judged,) = judge_graphs([model], (_Varying(), ExactArm("xnnpack")), ())
    assert (judged.judgement, judged.fails) == (None, False)
    assert judged.taken == (True, True)


class _UnsoundThreads(ExactArm):
    """A device on the other threads of which an operator gives no answer."""

    def on_other_threads(self) -> ExactArm | None:
        """Return kernels whose graphs are wrong, and whose NEG dies."""
        dying = PlantedFault("NEG", failure="crash")
        return ExactArm(self.name, (dying,))


def test_what_cannot_be_said_on_other_threads_leaves_what_was_said_before() -> None:
    nodes = (GraphNode("ABS", (0,), (1,)), GraphNode("NEG", (1,), (2,)))
    model = _posed(OperatorGraph((TENSOR, TENSOR, TENSOR), nodes, (0,), (1, 2)))
    (judged,) = judge_graphs([model], (_UnsoundThreads(), ExactArm("xnnpack")), ())
    assert judged.judgement is not None
    assert (judged.is_right, judged.invocation) == (True, "")
