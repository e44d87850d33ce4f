from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.campaign.search_phase import Spent, first_allowance, next_allowance


def spend(needs: list[int], max_queries: int, total: int | None) -> tuple[list[int], int]:
    """Spend a budget on chains that end after so many queries; the passes it took."""
    spent = [0] * len(needs)
    allowance: int | None = first_allowance(len(needs), max_queries, total)
    passes = 0
    while allowance is not None:
        spent = [min(need, allowance) for need in needs]
        passes += 1
        state = [Spent(used, ended=used == need) for used, need in zip(spent, needs, strict=True)]
        allowance = next_allowance(allowance, state, max_queries, total)
    return spent, passes


needs = st.lists(st.integers(1, 400), min_size=1, max_size=30)


@given(needs=needs, total=st.none() | st.integers(1, 5000), max_queries=st.integers(1, 500))
def test_the_bound_holds_and_nothing_is_left_that_could_be_shared(
    needs: list[int], total: int | None, max_queries: int
) -> None:
    spent, passes = spend(needs, max_queries, total)
    if total is None:
        assert spent == [min(need, max_queries) for need in needs]
        assert passes == 1
        return
    assert sum(spent) <= total
    open_ = [used < min(need, max_queries) for used, need in zip(spent, needs, strict=True)]
    assert not any(open_) or total - sum(spent) < sum(open_)
    assert passes <= 64


@given(needs=needs, total=st.integers(1, 5000))
def test_a_resumed_run_is_given_the_same_passes(needs: list[int], total: int) -> None:
    # Chains that ended in a later pass are known to have ended when earlier passes are repeated.
    final, _ = spend(needs, 500, total)
    allowance: int | None = first_allowance(len(needs), 500, total)
    while allowance is not None:
        fresh = [Spent(min(need, allowance), ended=need <= allowance) for need in needs]
        resumed = [
            Spent(used, ended=True) if used == need else Spent(min(need, allowance), ended=False)
            for used, need in zip(final, needs, strict=True)
        ]
        following = next_allowance(allowance, fresh, 500, total)
        assert following == next_allowance(allowance, resumed, 500, total)
        allowance = following


@given(asks=st.lists(st.integers(1, 12), min_size=1, max_size=30), total=st.integers(1, 5000))
def test_the_bound_holds_for_chains_that_ask_several_queries_at_once(
    asks: list[int], total: int
) -> None:
    # What such a chain could not use of its allowance must not be given out a second time.
    allowance: int | None = first_allowance(len(asks), 500, total)
    spent = [0] * len(asks)
    while allowance is not None:
        spent = [allowance // ask * ask for ask in asks]
        state = [Spent(used, ended=False) for used in spent]
        allowance = next_allowance(allowance, state, 500, total)
    assert sum(spent) <= total
