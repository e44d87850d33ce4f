from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeflare_agent.wrong_tokens import BURST, PER_SECOND, WrongTokens


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def exhausted(clock: Clock) -> WrongTokens:
    attempts = WrongTokens(clock)
    for number in range(BURST):
        assert attempts.admits(f"ipv4:127.0.0.1:{number}", right=False) is False
    return attempts


def test_wrong_tokens_are_not_looked_at_without_end_nor_are_right_ones() -> None:
    """Else the answer would tell a guesser that he was right."""
    attempts = exhausted(Clock())
    assert attempts.admits("new", right=False) is None
    assert attempts.admits("new", right=True) is None


def test_the_right_host_is_let_in_a_fifth_of_a_second_later() -> None:
    clock = Clock()
    attempts = exhausted(clock)
    clock.now += 1 / PER_SECOND
    assert attempts.admits("new", right=True) is True


def test_a_connection_that_has_shown_the_right_token_goes_on() -> None:
    clock = Clock()
    attempts = WrongTokens(clock)
    assert attempts.admits("host", right=True) is True
    for number in range(10 * BURST):
        attempts.admits(str(number), right=False)
    assert attempts.admits("host", right=True) is True


def test_a_known_connection_cannot_guess_on() -> None:
    attempts = WrongTokens(Clock())
    attempts.admits("host", right=True)
    looked_at = [attempts.admits("host", right=False) for _ in range(100)].count(False)
    assert looked_at == BURST


@given(st.lists(st.tuples(st.floats(0, 0.5), st.booleans(), st.integers(0, 9)), max_size=300))
def test_no_more_are_looked_at_than_the_limit(calls: list[tuple[float, bool, int]]) -> None:
    clock = Clock()
    attempts = WrongTokens(clock)
    refused = 0
    for pause, right, connection in calls:
        clock.now += pause
        refused += attempts.admits(str(connection), right=right) is False
        assert refused <= BURST + clock.now * PER_SECOND + 1


def test_what_is_kept_does_not_grow() -> None:
    attempts = WrongTokens(Clock())
    for number in range(5000):
        attempts.admits(str(number), right=True)
    assert len(attempts.known()) == 1024
    assert attempts.knows("4999")
