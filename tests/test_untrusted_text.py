from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from edgeflare.untrusted_text import for_html, for_markdown, printable


@given(text=st.text())
def test_what_is_shown_prints_and_is_in_one_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    if text.isprintable():
        assert shown == text


def test_control_characters_and_marks_of_direction_are_escaped() -> None:
    assert printable("a\x1b[2Jb\u202ec\u00e9") == r"a\x1b[2Jb\u202ecé"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<b>[a](b) | `c` ~~d~~ $e$ ![f](g)", None),
        ("# head", r"\# head"),
        ("1. first", r"1\. first"),
        ("- one", r"\- one"),
        ("---", r"\---"),
        ("http://a.b www.a.b", r"http\://a.b www\.a.b"),
        ("a\n\n# b\x1b[2J\u202ec", "a # b\ufffd\\[2J\ufffdc"),
        ("-0.5 (1.0–2.5) of #7", "-0.5 (1.0–2.5) of #7"),
    ],
)
def test_markdown_shows_a_name_as_what_it_is(text: str, expected: str | None) -> None:
    shown = for_markdown(text)
    assert expected is None or shown == expected
    parsed = MarkdownIt("gfm-like", {"linkify": False}).parse(f"{shown}\n\n- {shown}\n")
    inline = [token for token in parsed if token.type == "inline"]
    assert [token.type for token in parsed if token.type.endswith("_open")] == [
        *("paragraph_open", "bullet_list_open", "list_item_open", "paragraph_open")
    ]
    plain = " ".join(text.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd").split())
    for token in inline:
        assert {child.type for child in token.children or ()} <= {"text", "text_special"}
        assert "".join(child.content for child in token.children or ()) == plain


def test_an_arrow_keeps_its_direction_between_names_from_right_to_left() -> None:
    for shown in (for_html, for_markdown):
        assert shown("סנדל → נעל") == "סנדל\u200e → \u200eנעל"
        assert shown("Bag → Coat") == "Bag → Coat"
    once = for_html("סנדל → נעל")
    assert for_html(once) == once, "a figure's text is made safe there and on its page"
