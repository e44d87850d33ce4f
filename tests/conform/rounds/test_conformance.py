"""What a run has seen: figures of cells, observations, and joined operators that go wrong."""

from __future__ import annotations

from dataclasses import replace

from conforming import ADD, an_addition
from drafting import relu_chain
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.rounds.conformance import Conformance, settings_of
from edgeflare.conform.rounds.judged_draft import JudgedDraft
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

RIGHT = KernelJudgement("right")


def _add(state: Conformance, *said: KernelJudgement) -> None:
    for one in said:
        state.add(JudgedDraft(Draft((an_addition(),)), (one,)))


def test_the_largest_rounding_and_all_refusals_are_kept() -> None:
    state = Conformance()
    _add(
        state,
        RIGHT,
        *(KernelJudgement("rounding", worst=one, unit="steps") for one in (1.0, 2.0, 0.5)),
    )
    _add(
        state,
        *(KernelJudgement("refused", "refused", detail=one) for one in ("no op", "size", "size")),
    )
    figures = state.cells[ADD]
    assert figures.verdicts == {"right": 1, "rounding": 3, "refused": 3}
    assert figures.rounding == (2.0, "steps")
    assert figures.refused == {"no op": 1, "size": 2}
    assert state.models == len(state.observations[ADD]) == len(state.nodes[ADD]) == 7


def test_a_model_is_observed_with_what_follows_from_its_settings() -> None:
    state = Conformance()
    _add(state, RIGHT)
    (observed,) = state.observations[ADD]
    assert observed.settings == settings_of(an_addition())
    assert observed.settings.items() >= an_addition().configuration.items()
    assert len(observed.settings) > len(an_addition().configuration)


def test_an_operator_that_was_not_run_is_not_observed() -> None:
    state = Conformance()
    state.add(JudgedDraft(relu_chain([(2,), (2,)]), (KernelJudgement("crash", "crash"), None)))
    assert state.cells["RELU", "float32"].verdicts == {"crash": 1}
    assert (state.models, state.joined) == (1, [])


def test_operators_of_a_model_were_run_as_they_stand_where_they_were_judged() -> None:
    state = Conformance()
    nodes = tuple(replace(one, given=at) for at, one in enumerate(relu_chain([(2,), (2,)]).nodes))
    state.add(JudgedDraft(Draft(nodes), (KernelJudgement("crash", "crash"), None)))
    _add(state, RIGHT)
    assert state.given([("RELU", "float32"), ADD, ("SUM", "int8")]) == {0}
    assert state.given([ADD]) == state.refused([("RELU", "float32")]) == set()
    state.add(JudgedDraft(Draft(nodes[1:]), (KernelJudgement("refused", "refused"),)))
    assert state.given([("RELU", "float32")]) == {0}
    assert state.refused([("RELU", "float32"), ADD]) == {1}


def test_only_joined_operators_that_fail_are_kept() -> None:
    state, draft = Conformance(), relu_chain([(2,), (2,)])
    wrong = KernelJudgement("device", "wrong values", counted=True)
    for whole in (RIGHT, KernelJudgement("rounding"), KernelJudgement("refused"), wrong):
        state.add(JudgedDraft(draft, (RIGHT, RIGHT), whole))
    assert [one.whole for one in state.joined] == [wrong]
