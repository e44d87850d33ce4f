"""The section of a check in a model card."""

from __future__ import annotations

from pathlib import Path

import pytest

from checked_figures import changes, decisions, document, figures
from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.release.model_card import ModelCard

CARD = "---\nlicense: apache-2.0\n---\n\n# My model\n\nWhat it is for.\n"

WORSE = decisions(
    inputs=400,
    labelled=400,
    right={Arm.ORIGINAL: 390, Arm.TWIN: 300, Arm.DEVICE: 300},
    changes=changes(90, harmed=90, inputs=400),
)


def test_a_section_is_added_and_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(CARD)
    ModelCard.read(path).keep(document(figures()))
    first = path.read_text()
    assert first.startswith(CARD)
    assert "✔ pass" in first
    path.write_text(first + "\nMore of mine.\n")
    ModelCard.read(path).keep(document(figures(decisions=WORSE)))
    second = path.read_text()
    assert second.startswith(CARD)
    assert second.endswith("\n\nMore of mine.\n")
    assert second.count("## Compressed model against its original") == 1
    assert "Do not ship" in second
    assert "| accuracy-drop | ✖ fail |" in second


def test_a_card_that_is_absent_is_written(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    ModelCard.read(path).keep(document(figures()))
    assert path.read_text().startswith("<!-- edgeflare check")
    assert ModelCard.read(path).text == path.read_text()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("README.md", b"\xff\xfe\x00", "no text in UTF-8"),
        ("README.md", b"<!-- end of edgeflare check -->", "one comment of two"),
        ("card.txt", b"", "expected a Markdown file, such as README.md"),
        ("absent/README.md", None, "No such file or directory"),
        ("README.md", "a folder", "Is a directory"),
    ],
)
def test_what_is_no_card_is_refused_before_the_check(
    tmp_path: Path, name: str, content: bytes | str | None, said: str
) -> None:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.mkdir()
    with pytest.raises(UserError, match=said):
        ModelCard.read(path)
