"""A search by a strategy of another package, held to what `Strategy` says that it must keep to.

Nobody here has tested such a strategy. What it does otherwise ends the run with a line that names
its package, where it would be taken for a mistake in edgeflare, or for a finding that is none.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NoReturn

import msgspec
import numpy as np

from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input, read_only
from edgeflare.core.query import Arm, GradientQuery, Outcome, Query, TranslatedQuery
from edgeflare.errors import UserError
from edgeflare.python_callable import USER_ERRORS, reason
from edgeflare.strategies.strategy import SearchGenerator, Start, Strategy, WhiteboxTimeUp

Complaint = Callable[[str], str]
"""Returns the line that names the strategy and its package, given what is wrong."""


def held_search(strategy: Strategy, start: Start, complaint: Complaint) -> SearchGenerator:
    """Search as a strategy does, with inputs that it can no longer change once it has yielded them.

    Args:
        strategy: a strategy of another package.
        start: what the search begins with; the strategy cannot write to its inputs.
        complaint: says what is wrong with the strategy.

    Raises:
        UserError: the strategy raised something, or does not keep to what it must.

    """
    held = _HeldSearch(start, complaint)
    with speaking_of(complaint):
        search = strategy.search(held.guarded())
    if not isinstance(search, Generator):
        held.refuse(f"search returned {_type(search)}, and has to yield queries")
    ask: Callable[[], Any] = partial(next, search)
    while True:
        with speaking_of(complaint):
            try:
                asked = ask()
            except StopIteration as end:
                return held.trigger(end.value)
            # What it yields may raise where it is read, as arms that are no list do.
            if isinstance(asked, (GradientQuery, TranslatedQuery)):
                held.check_white_box(asked, strategy)
            else:
                asked = held.queries(asked)
        try:
            answer = yield asked
        except WhiteboxTimeUp as up:
            ask = partial(search.throw, up)
        else:
            ask = partial(search.send, answer)


@contextmanager
def speaking_of(complaint: Complaint) -> Iterator[None]:
    """Complain about a strategy of another package whatever its own code raises.

    A UserError speaks for itself, and that a search has no time for gradients is no error.
    """
    try:
        yield
    except (UserError, WhiteboxTimeUp):
        raise
    except USER_ERRORS as error:
        raise UserError(complaint(f"it fails ({_place(error)}{reason(error)})")) from error


class _HeldSearch:
    """What one search may ask, and what it has asked."""

    def __init__(self, start: Start, complaint: Complaint) -> None:
        self._start, self._complaint = start, complaint
        self._arms = frozenset(start.outcome.answers)
        self._asked: dict[bytes, set[str]] = {}
        """The arms and kernel sets that each input was asked about."""

    def refuse(self, why: str) -> NoReturn:
        """Complain about the strategy."""
        raise UserError(self._complaint(why))

    def guarded(self) -> Start:
        """Return what the search begins with, of which it can write to no input."""
        start = self._start
        donors = [replace(donor, input=read_only(donor.input)) for donor in start.donors]
        return replace(start, seed=read_only(start.seed), donors=donors)

    def queries(self, asked: Any) -> list[Query]:
        """Return the queries that a search yielded, with copies of their inputs."""
        if not isinstance(asked, Sequence) or not asked:
            self.refuse(f"it yielded {_said(asked)}, and has to yield a list of queries")
        return [self._query(query) for query in asked]

    def _query(self, query: Any) -> Query:
        if not isinstance(query, Query):
            self.refuse(f"it yielded a list with {_type(query)}, and has to yield queries")
        self._require_input(query.input)
        wanted = {*query.arms, *query.kernels}
        known = {*self._arms, *self._start.ensemble}
        if not wanted or not wanted <= known:
            named = ", ".join(sorted(map(str, wanted))) or "nobody"
            self.refuse(f"it asks {named}, and may ask {', '.join(sorted(map(str, known)))}")
        before = self._asked.setdefault(_digest(query.input), set())
        if query.again and (not before or wanted & before):
            self.refuse(
                "it asks again about an input that is new, or an arm that has answered about it"
            )
        before.update(wanted)
        return msgspec.structs.replace(query, input=np.array(query.input, order="C"))

    def check_white_box(self, query: GradientQuery | TranslatedQuery, strategy: Strategy) -> None:
        """Refuse a white-box query that cannot be answered."""
        if not strategy.needs_gradients:
            self.refuse(f"it yielded {_type(query)}, and does not set needs_gradients")
        if isinstance(query, TranslatedQuery):
            for input_ in query.inputs:
                self._require_input(input_)
            return
        self._require_input(query.input)
        if query.arm not in (Arm.ORIGINAL, Arm.TWIN):
            self.refuse(f"it asks for a gradient of {query.arm}: expected original or twin")
        wanted = self._start.outcome[query.arm].scores.shape
        if np.shape(query.weights) != wanted or not np.isfinite(query.weights).all():
            self.refuse(f"it asks for a gradient by weights that are not {wanted} finite numbers")
        if not (isinstance(query.neurons, Mapping) and all(map(_is_neuron, query.neurons.items()))):
            self.refuse(
                "it asks for a gradient by neurons that are no numbers from 0 on with finite"
                " weights"
            )

    def trigger(self, found: Any) -> Trigger | None:
        """Return what a search found, if it is what the campaign takes for a finding."""
        if found is None:
            return None
        if not isinstance(found, Trigger):
            self.refuse(f"its search returned {_type(found)}, and has to return a Trigger or None")
        goal = self._start.goal
        self._require_input(found.input)
        if not set(goal.needed) <= self._asked.get(_digest(found.input), set()):
            needed = ", ".join(goal.needed)
            self.refuse(f"it returned a trigger about which it has not asked {needed}")
        outcome = found.outcome
        answered = isinstance(outcome, Outcome) and set(goal.needed) <= outcome.answers.keys()
        if not answered or goal.met(outcome) is None or goal.met(outcome) != found.kind:
            self.refuse(f"it returned a trigger that is no {found.kind!r} by its goal")
        names = tuple(found.operators)
        if not all(isinstance(name, str) for name in names):
            self.refuse("it returned a trigger whose operators are not names")
        return replace(found, input=np.array(found.input, order="C"), operators=names)

    def _require_input(self, input_: Any) -> None:
        seed = self._start.seed
        if not isinstance(input_, np.ndarray):
            self.refuse(f"it asks about {_type(input_)}, and inputs are arrays of numpy")
        if (input_.shape, input_.dtype) != (seed.shape, seed.dtype):
            self.refuse(
                f"it asks about {input_.dtype} of shape {input_.shape}, and inputs are {seed.dtype}"
                f" of shape {seed.shape}"
            )
        if input_.dtype.kind == "f" and not np.isfinite(input_).all():
            self.refuse("it asks about an input with infinity or NaN")
        if not self._start.bounds.holds(input_, seed):
            self.refuse(
                "it asks about an input beyond the run's bounds or what inputs may hold:"
                " start.bounds.project brings one there"
            )


def _is_neuron(item: tuple[Any, Any]) -> bool:
    """Tell whether it is the number of a neuron with its weight."""
    number, weight = item
    return isinstance(number, Integral) and int(number) >= 0 and _is_finite(weight)


def _is_finite(weight: object) -> bool:
    return isinstance(weight, Real) and math.isfinite(weight)


def _digest(input_: Input) -> bytes:
    return hashlib.blake2b(input_.tobytes(), digest_size=16).digest()


def _type(value: object) -> str:
    return type(value).__name__


def _said(value: object) -> str:
    return "nothing" if isinstance(value, Sequence) and not value else _type(value)


def _place(error: BaseException) -> str:
    """Return where the code of a strategy raised, such as "darken.py line 12: "."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return ""
    return f"{at.tb_frame.f_code.co_filename.rpartition('/')[2]} line {at.tb_lineno}: "
