"""Probes of known issues of operators that are right alone and wrong together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conforming import ExactArm
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, Turns
from edgeflare.conform.findings.issue_probes import GraphProbe, ProbedOperator
from edgeflare.conform.findings.known_issues import KnownIssue, known_issues
from edgeflare.conform.graphs.graph_arrangement import arrangement
from edgeflare.conform.graphs.graph_verdict import invocation_told, judged_on
from edgeflare.conform.issue_reproduction import probed_graph, probed_issues
from edgeflare.errors import UserError

SHIPPED = [issue for issue in known_issues() if issue.graph is not None]
SQUARED = ProbedOperator("MUL", "float32", {"shape": (2, 3)}, ("x", "x"))


@pytest.mark.parametrize("issue", SHIPPED, ids=[issue.operator for issue in SHIPPED])
def test_what_is_shipped_hangs_together_as_its_entry_says(issue: KnownIssue) -> None:
    assert issue.graph is not None
    graph = probed_graph(issue.graph).graph
    assert set(issue.wired) <= set(arrangement(graph, invocation_told(issue.wired)))
    names = " then ".join(node.operator for node in graph.nodes)
    assert issue.operator in ("", names)


class _Remembering(ExactArm):
    """A device on which a graph answers its first invocation again where the first is larger."""

    def _answer(self, model: PosedModel) -> ModelAnswer:
        answer = super()._answer(model)
        first, second = model.operands[0][0].sum(), model.operands[0][1].sum()
        if len(model.graph.nodes) == 1 or first <= second:
            return answer
        return ModelAnswer(tuple(np.stack([rows[0]] * 2) for rows in answer.outputs))


class _Negating(ExactArm):
    """A device on which an operator that reads another's result answers the negative."""

    def _answer(self, model: PosedModel) -> ModelAnswer:
        answer, alone = super()._answer(model), len(model.graph.nodes) == 1
        return answer if alone else ModelAnswer(tuple(-1 - rows for rows in answer.outputs))


def test_a_probe_shows_where_a_graph_is_wrong_and_its_operators_are_right() -> None:
    probe = GraphProbe((SQUARED, ProbedOperator("ABS", "float32", {}, ("0",))), ("0", "1"))
    assert [node.inputs for node in probed_graph(probe).graph.nodes] == [(0, 0), (1,)]
    issue = KnownIssue("is negative", symptoms=("wrong-values",), graph=probe)
    assert probed_issues([issue], _Negating())[0].outcome == "shows"
    assert probed_issues([issue], ExactArm())[0].outcome == "right"


def test_a_graph_is_judged_in_the_order_of_invocations_in_which_it_was_found() -> None:
    probe = GraphProbe((SQUARED, ProbedOperator("ABS", "float32", {}, ("0",))), ("1",))
    model = probed_graph(probe)
    rows = sorted((rows for rows in model.operands[0]), key=np.sum)
    rising = replace(model, operands=(np.stack(rows),))
    other = invocation_told(["a constant is read by several", "invoked in another order"])
    assert other == "in another order"
    assert judged_on(rising, _Remembering()).verdict == "right"
    assert judged_on(rising, _Remembering(), other).symptom == "wrong-values"
    assert judged_on(rising, ExactArm(), other).verdict == "right"


class _Settled(ExactArm):
    """A device that takes turns, and computes each as the one before."""

    def taking_turns(self, turns: Turns) -> ExactArm | None:
        in_turn = super().taking_turns(turns)
        return None if in_turn is None else _InLastTurn(in_turn)


class _InLastTurn(ExactArm):
    def __init__(self, sound: ExactArm) -> None:
        super().__init__(sound.name)
        self._sound = sound

    def _answer(self, model: PosedModel) -> ModelAnswer:
        (answer,) = self._sound.run([model])
        first, second, _ = answer.outputs
        return ModelAnswer((first, second, first + 1))


def test_a_probe_is_invoked_as_its_issue_is_wired() -> None:
    probe = GraphProbe((SQUARED,), ("0",))
    for wired in ("invoked in two shapes in turn", "invoked by two signatures in turn"):
        issue = KnownIssue("keeps", symptoms=("wrong-values",), wired=(wired,), graph=probe)
        assert probed_issues([issue], _Settled())[0].outcome == "shows"
        assert probed_issues([issue], ExactArm())[0].outcome == "right"
        assert probed_issues([replace(issue, wired=())], _Settled())[0].outcome == "right"


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        (SQUARED, "on another number of threads"),
        (ProbedOperator("LSTM", "float32"), "again without a reset of its state"),
    ],
)
def test_kernels_that_cannot_be_invoked_as_a_finding_was_are_not_right(
    operator: ProbedOperator, told: str
) -> None:
    model = probed_graph(GraphProbe((operator,), ("0",)))
    assert judged_on(model, ExactArm(), invocation_told([f"invoked {told}"])).verdict == "refused"


@pytest.mark.parametrize(
    ("reads", "outputs", "said"),
    [
        (("0.1",), ("1",), "there is no tensor '0.1'"),
        (("0",), ("y",), "there is no tensor 'y'"),
        (("0", "0", "0"), ("1",), r"operator 1 \(ABS\) cannot read what it should"),
    ],
)
def test_operators_that_do_not_fit_are_told_with_their_issue(
    reads: tuple[str, ...], outputs: tuple[str, ...], said: str
) -> None:
    probe = GraphProbe((SQUARED, ProbedOperator("ABS", "float32", {}, reads)), outputs)
    with pytest.raises(UserError, match=f"^it is wrong: graph: {said}"):
        probed_issues([KnownIssue("it is wrong", graph=probe)], ExactArm())
