"""Odds rise with failures of the same kind, and with them packs become smaller."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.execution.failure_history import FailureHistory
from edgeflare.conform.execution.kernel_arm import PosedModel, RunFailure
from edgeflare.conform.execution.pack_groups import PackLimits, model_bytes, next_group
from posed_models import ROWS, addition, mixed_models, posed, unary

CRASH = RunFailure("crash", "SIGSEGV")


def groups(
    history: FailureHistory, models: list[PosedModel], limits: PackLimits
) -> list[list[int]]:
    left = list(range(len(models)))
    found = []
    while left:
        found.append(next_group(models, left, lambda at: history.odds(models[at].graph), limits))
        left = [at for at in left if at not in found[-1]]
    return found


@given(st.lists(st.booleans(), max_size=60))
def test_odds_are_between_those_before_and_those_seen(fates: list[bool]) -> None:
    history = FailureHistory()
    before = history.odds(unary("ABS"))
    for failed in fates:
        history.note(posed(unary("ABS", (7,))), CRASH if failed else None)
    seen = sum(fates) / len(fates) if fates else before
    assert min(before, seen) - 1e-9 <= history.odds(unary("ABS")) <= max(before, seen) + 1e-9
    assert history.odds(unary("NEG")) == before


def test_what_has_no_values_is_likelier_to_fail() -> None:
    history = FailureHistory()
    before = history.odds(unary("ABS", (2, 0)))
    assert before > 10 * history.odds(unary("ABS", (2, 1)))
    # Unless it is seen to do no harm.
    for _ in range(70):
        history.note(posed(unary("NEG", (0, 3))), None)
    assert history.odds(unary("ABS", (2, 0))) < before / 3
    history.note(posed(unary("NEG", (0, 3))), CRASH)
    assert history.odds(unary("ABS", (2, 0))) > before / 3


def test_a_version_that_is_missing_is_known_by_operator_and_version() -> None:
    history = FailureHistory()
    detail = "some runtime 1.2 has no operator ADD version 77: convert the model for an older one"
    refusal = RunFailure("refused", detail)
    history.note(posed(addition(version=77)), refusal)
    assert history.refusal(addition((1, 2), version=77)) == refusal
    assert history.refusal(addition()) is None
    assert history.refusal(unary("ABS")) is None


def test_an_operator_that_is_missing_is_known_in_all_versions() -> None:
    for detail in (
        "TFLite Micro has no operator ADD",
        "the GPU accelerator takes 0 of 1 nodes, and not ADD: Operation is not supported: set",
        "the GPU accelerator takes 0 of 1 nodes, and not ADD: Not supported op ADD: set fallback",
    ):
        history = FailureHistory()
        refusal = RunFailure("refused", detail)
        history.note(posed(addition()), refusal)
        assert history.refusal(addition((1, 2), version=77)) == refusal
        assert history.refusal(unary("ABS")) is None


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        ("CAST", "Not supported Cast case. Input type: INT64 and output type: FLOAT32"),
        ("BATCH_MATMUL", "Not supported batched mat mul case: second input has unsupported rank"),
    ],
)
def test_an_operator_that_is_refused_for_its_types_is_tried_with_others(
    operator: str, reason: str
) -> None:
    history = FailureHistory()
    detail = f"the GPU accelerator takes 0 of 1 nodes, and not {operator}: {reason}: set fallback"
    history.note(posed(unary(operator)), RunFailure("refused", detail))
    assert history.refusal(unary(operator, (1, 2))) is None


def test_it_is_known_what_hung() -> None:
    history = FailureHistory()
    history.note(posed(unary("ABS")), CRASH)
    assert not history.hung(unary("ABS"))
    history.note(posed(unary("ABS")), RunFailure("hang", "no answer"))
    assert history.hung(unary("ABS", (5,)))


def test_witnesses_are_harmless_models_that_lived_one_of_each_kind() -> None:
    history = FailureHistory()
    models = [*mixed_models(8), posed(unary("FLOOR")), posed(unary("CEIL"))]
    for model in models[:-1]:
        history.note(model, None)
    history.note(models[-1], CRASH)
    history.note_corruption(unary("FLOOR"))
    assert history.corrupts(unary("FLOOR", (9,)))
    assert history.odds(unary("FLOOR")) == 1
    assert list(map(id, history.witnesses(ROWS))) == list(map(id, models[4:8]))
    assert history.witnesses(ROWS + 1) == []


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 100), st.integers(100, 5000))
def test_every_model_has_one_group_within_the_limits(
    count: int, most: int, tensors: int, size: int
) -> None:
    models = mixed_models(count)
    limits = PackLimits(most, tensors, size)
    found = groups(FailureHistory(), models, limits)
    assert [at for group in found for at in group] == list(range(count))
    for group in found:
        chosen = [models[at] for at in group]
        assert len(group) <= most
        assert len(group) == 1 or sum(map(model_bytes, chosen)) <= size
        assert len(group) == 1 or sum(len(one.graph.values) for one in chosen) <= tensors


def test_what_failed_before_goes_behind_the_others_in_few() -> None:
    history = FailureHistory()
    for _ in range(4):
        history.note(posed(unary("FLOOR")), CRASH)
    models = mixed_models(20)
    for at in (2, 3, 11, 12, 13):
        models[at] = posed(unary("FLOOR"))
    first, *others = groups(history, models, PackLimits())
    assert len(first) == 15
    assert others == [[2, 3], [11, 12], [13]]
