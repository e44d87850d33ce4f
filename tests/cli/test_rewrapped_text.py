"""Tests of texts that are wrapped anew."""

from __future__ import annotations

from textwrap import dedent, fill

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.cli.rewrapped_text import rewrapped

NARROW = dedent(
    """\
    A summary
    of two lines.

    Heading
        - An item
          of two lines.
        - Another.
        10. A numbered
            one."""
)
WIDE = dedent(
    """\
    A summary of two lines.

    Heading
        - An item of two lines.
        - Another.
        10. A numbered one."""
)


def test_lines_are_joined_within_a_paragraph_and_an_item() -> None:
    assert rewrapped(NARROW, 80) == WIDE
    assert rewrapped(rewrapped(WIDE, 18), 80) == WIDE
    assert rewrapped("", 18) == ""


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1), st.integers(9, 60))
def test_a_paragraph_is_the_same_however_it_was_wrapped(words: list[str], width: int) -> None:
    assert rewrapped(fill(" ".join(words), width), 40) == fill(" ".join(words), 40)
