from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.errors import UserError
from edgeflare.search.mutation_loop import mutation_loop
from edgeflare.search.operator_selection import Uniform
from edgeflare.search.random_walk import accept_all
from edgeflare.search.strategy import AskTellSearch, SearchGenerator, Start
from edgeflare_operators import MutationOperator

Image = NDArray[np.uint8]


def brighten(image: Image, rng: np.random.Generator) -> Image:
    return np.add(image, 1, dtype=np.uint8)


def to_float(image: Image, rng: np.random.Generator) -> Any:
    return image + 0.5


def search_with(operator: MutationOperator, accepts: Any = accept_all) -> Any:
    def search(start: Start) -> SearchGenerator:
        return mutation_loop(start, Uniform([operator], start.rng), accepts)

    return search


def test_a_rejected_mutant_is_no_parent(agreeing_bench: Any) -> None:
    verdicts = iter([True, False, False, True, True])
    search = search_with(
        MutationOperator("brighten", "image", brighten), lambda _mutant: next(verdicts)
    )
    drive = agreeing_bench.drive(search, Goal(), steps=5)
    steps = [
        int(query.input[0, 0, 0]) - int(agreeing_bench.seed[0, 0, 0]) for query in drive.queries
    ]
    assert steps == [1, 2, 2, 2, 3]


def test_the_trail_holds_accepted_operators_and_the_last(bench: Any) -> None:
    drive = bench.drive(
        search_with(MutationOperator("brighten", "image", brighten), lambda _mutant: False),
        Goal(ties=True),
        steps=20,
    )
    assert drive.finding is None  # always the same mutant
    failed = Answer(None, False, np.zeros(4), np.zeros(4), "crash")
    strategy = AskTellSearch(
        search_with(MutationOperator("brighten", "image", brighten))(bench.start(Goal()))
    )
    fine = bench.start(Goal()).outcome
    strategy.tell([fine])
    strategy.tell([Outcome({**fine.answers, Arm.DEVICE: failed})])
    assert strategy.finding is not None
    assert strategy.finding.kind == "crash"
    assert strategy.finding.operators == ("brighten", "brighten")
    assert strategy.ask() == ()


def test_an_operator_that_breaks_its_promise_is_named(bench: Any) -> None:
    with pytest.raises(UserError, match="operator 'half' returned float64"):
        bench.drive(search_with(MutationOperator("half", "image", to_float)), Goal(), steps=1)
