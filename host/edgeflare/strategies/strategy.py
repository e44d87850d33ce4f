"""The seam between a search and the campaign that evaluates for it.

`Strategy` is the base class of every strategy, of this package and of others. `AskTellSearch` lets
the campaign drive the generator that a strategy returns.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.bounds import UNBOUNDED, Bounds
from edgeflare.core.goal import Find, Goal, Trigger
from edgeflare.core.input_space import EIGHT_BIT, Input, InputSpace
from edgeflare.core.query import (
    GradientQuery,
    Outcome,
    Query,
    TranslatedOutcome,
    TranslatedQuery,
    WhiteboxQuery,
)
from edgeflare.strategies.strategy_parameters import check_parameters
from edgeflare_operators import MutationOperator

T = TypeVar("T")
QueryGenerator = Generator[Sequence[Query], Sequence[Outcome], T]
"""A part of a search: yields queries, is sent their outcomes in order, and returns a result."""

WhiteboxGenerator = Generator[Sequence[Query] | WhiteboxQuery, Any, T]
"""A part of a search that looks into the models: it may also yield one white-box query, and is sent
its answer."""

SearchGenerator = WhiteboxGenerator[Trigger | None]
"""A whole search: returns the trigger that it found, or None if it gives up."""

WhiteboxAnswer = NDArray[np.float64] | Sequence[TranslatedOutcome]
"""What a white-box query is answered by; see `edgeflare.core.query`."""


@dataclass(frozen=True, slots=True)
class Donor:
    """Another seed of the campaign, one that does not deviate itself.

    Attributes:
        input: the seed input.
        outcome: what the arms answered about it.

    """

    input: Input
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Start:
    """What a search begins with.

    Attributes:
        seed: the seed input.
        outcome: what the arms answered about the seed input.
        goal: what counts as a finding.
        rng: the only source of randomness that the search may use.
        bounds: how far a mutant may be from the seed; every query keeps them.
        ensemble: kernel sets of the twin that can be queried beside its own; empty for none.
        donors: seeds of the campaign that do not deviate, possibly this one among them; may be
            empty, and is where the strategy does not say that it reads them.
        operators: the run's operator pool, in the order of the operators' names.
        paper_operators: the operators of DFlare's paper for such inputs.
        published_operators: those of its published code, in its order.
        space: what values inputs may have, and how to move among them.
        host_predicts: whether models of the host may answer in the device's place; not where the
            device has input or output stages of its own, which they do not have.

    """

    seed: Input
    outcome: Outcome
    goal: Goal
    rng: np.random.Generator
    bounds: Bounds = UNBOUNDED
    ensemble: tuple[str, ...] = ()
    donors: Sequence[Donor] = ()
    operators: Sequence[MutationOperator] = ()
    paper_operators: Sequence[MutationOperator] = ()
    published_operators: Sequence[MutationOperator] = ()
    space: InputSpace = EIGHT_BIT
    host_predicts: bool = True


class Strategy(ABC):
    """A search strategy: how a triggering input is searched for from one seed input.

    A strategy is a frozen dataclass. Its fields are its parameters, its one method is `search`:

        @dataclass(frozen=True)
        class Darken(Strategy):
            \"\"\"Darken the seed until the compared arms disagree.\"\"\"

            summary = "take away gray levels until the decisions differ"

            step: int = parameter(1, "Gray levels that each query takes away.", at_least=1)

            def search(self, start: Start) -> SearchGenerator:
                mutant = start.seed
                while mutant.any():
                    mutant = mutant - np.minimum(mutant, self.step).astype(np.uint8)
                    if not start.bounds.holds(mutant, start.seed):
                        return None
                    (outcome,) = yield [Query(mutant, start.goal.needed)]
                    kind = start.goal.met(outcome)
                    if kind is not None:
                        return Trigger(mutant, kind, outcome, ("darken",))
                return None

    A package makes it known under the name `darken` by an entry point:

        [project.entry-points."edgeflare.strategies"]
        darken = "my_package:Darken"

    The life of a search:

    1. One strategy object is made for the whole campaign, from the defaults and from what the user
       sets (`--set step=2`). Each value is checked against its field's type and bounds.
    2. For each seed that does not deviate itself, the campaign calls `search` once. Many searches
       are open at once, so `search` must keep its state in local variables and not in `self`.
    3. The generator yields one or more queries. The campaign evaluates them, in batches with those
       of other searches, and sends back their outcomes, in the order of the queries.
    4. It ends by returning a `Trigger` or None. The campaign may also stop asking at any yield,
       when a budget is spent; the generator is then not resumed.

    What a search may assume: each outcome holds the answers of the arms and of the ensemble's
    kernel sets that its query names. An arm that crashed or hung has an answer with a `failure`;
    `Goal.met` counts that as a finding.

    What it must keep to, and one of another package is held to (`search_contract`):

    - Every random draw comes from `start.rng`. A run is resumed by repeating its old outcomes, and
      the search must then yield the same queries.
    - Every input is within `start.bounds`; `start.bounds.project` brings one there.
    - `start.seed`, and any input that was yielded, is never changed afterwards.
    - White-box queries (`GradientQuery`, `TranslatedQuery`) are yielded one at a time, not in a
      list, and only where `needs_gradients` is set. They are answered at once, by the host. Where
      the time limit of the chain is spent on them, `WhiteboxTimeUp` is raised in their place.
    - The returned trigger is the input of a query, judged by `start.goal.met` on an outcome that
      holds all arms of `start.goal.needed`. A query with `again=True` asks further arms about the
      input of an earlier query, and is not counted as another query.

    Attributes:
        summary: one line that helps to choose among strategies.
        version: grows by one whenever the same seed and generator may lead to other queries; the
            result of a run has it.
        draws_from_pool: whether it draws from the run's operator pool, `Start.operators`; if not,
            it names its own operators.
        needs_paper_operators: whether it draws from the operators of a paper, so that it cannot
            search inputs of a domain that has none.
        needs_choices: whether it follows decisions, so that it cannot search where a task gives
            values and nothing to choose from.
        needs_gradients: whether it yields white-box queries, so that original and twin have to be
            translated.
        reads_other_seeds: what is looked for when it reads `Start.donors`, so that a search of some
            seeds has to know how the others were answered; elsewhere there are no donors.

    """

    summary: ClassVar[str] = ""
    version: ClassVar[int] = 1
    draws_from_pool: ClassVar[bool] = True
    needs_paper_operators: ClassVar[bool] = False
    needs_choices: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = False
    reads_other_seeds: ClassVar[frozenset[Find]] = frozenset(Find)

    def __post_init__(self) -> None:
        """Check the parameters; a subclass that overrides this calls it first.

        Raises:
            UserError: one is not of its type or not within its bounds.

        """
        check_parameters(self)

    @property
    def needs_neurons(self) -> bool:
        """Whether it asks for neurons, with these parameters, so that nothing may hide them."""
        return False

    def require(self, seed: Input) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse parameters that do not fit the inputs, before anything is written.

        Args:
            seed: one of them.

        """

    @abstractmethod
    def search(self, start: Start) -> SearchGenerator:
        """Return a new search from one seed input; see the class for what it may do."""


def no_white_box(query: WhiteboxQuery) -> WhiteboxAnswer:
    """Refuse a white-box query of a strategy that did not say that it has any.

    Raises:
        TypeError: always.

    """
    raise TypeError(f"{type(query).__name__} of a strategy without needs_gradients")


class WhiteboxTimeUp(Exception):  # noqa: N818
    """Raised where a search yields a white-box query and has spent its time on them.

    It may still return a trigger, or ask the arms about what it has.
    """


class AskTellSearch:
    """A search that is asked for queries and told their outcomes.

    It ends when `ask` returns nothing; then `finding` is what the generator returned. White-box
    queries are answered at once, by a function that was handed in; so a search that is resumed is
    answered the same again, and nothing of it need be kept.

    Attributes:
        host_gradients: gradients that it was answered.
        translated_evaluations: inputs on which translations were evaluated.
        whitebox_seconds: the time that took.
        time_up: whether the search ended since that was as long as it may be.

    """

    def __init__(
        self,
        generator: SearchGenerator,
        white_box: Callable[[WhiteboxQuery], WhiteboxAnswer] = no_white_box,
        whitebox_limit: float = math.inf,
    ) -> None:
        self.host_gradients = 0
        self.translated_evaluations = 0
        self.whitebox_seconds = 0.0
        self.time_up = False
        self._limit = whitebox_limit
        self._generator = generator
        self._white_box = white_box
        self._finding: Trigger | None = None
        self._asked: Sequence[Query] = ()
        self._advance(None)

    def ask(self) -> Sequence[Query]:
        """Return the queries to evaluate next; empty when the search has ended."""
        return self._asked

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Send the outcomes of the queries last asked, in their order."""
        self._advance(outcomes)

    @property
    def finding(self) -> Trigger | None:
        """The triggering input, once there is one."""
        return self._finding

    def _advance(self, answer: Sequence[Outcome] | WhiteboxAnswer | None) -> None:
        try:
            asked = self._generator.send(answer)
            while isinstance(asked, (GradientQuery, TranslatedQuery)):
                if self.whitebox_seconds >= self._limit:
                    asked = self._generator.throw(WhiteboxTimeUp())
                else:
                    asked = self._generator.send(self._answered(asked))
            self._asked = asked
        except StopIteration as end:
            self._asked = ()
            self._finding = end.value
        except WhiteboxTimeUp:
            self._asked = ()
        if not self._asked:
            self.time_up = self.whitebox_seconds >= self._limit

    def _answered(self, query: WhiteboxQuery) -> WhiteboxAnswer:
        begin = time.perf_counter()
        answer = self._white_box(query)
        self.whitebox_seconds += time.perf_counter() - begin
        if isinstance(query, GradientQuery):
            self.host_gradients += 1
        else:
            self.translated_evaluations += len(query.inputs)
        return answer
