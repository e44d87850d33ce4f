from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeflare.untrusted_text import printable


@given(text=st.text())
def test_what_is_shown_prints_and_is_in_one_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    if text.isprintable():
        assert shown == text


def test_control_characters_and_marks_of_direction_are_escaped() -> None:
    assert printable("a\x1b[2Jb\u202ec\u00e9") == r"a\x1b[2Jb\u202ecé"
