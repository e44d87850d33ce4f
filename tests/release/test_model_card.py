"""The section of a check in a model card."""

from __future__ import annotations

from pathlib import Path

import pytest

from checked_figures import changes, decisions, document, figures
from edgeflare.core.query import Arm
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.release.model_card import ModelCard

CARD = "---\nlicense: apache-2.0\n---\n\n# My model\n\nWhat it is for.\n"

BEGIN = b"<!-- edgeflare check: what stands here is replaced by the next one -->"
END = b"<!-- end of edgeflare check -->"

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


def test_what_was_edited_during_a_check_stays_and_lines_end_as_before(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_bytes(CARD.replace("\n", "\r\n").encode())
    card = ModelCard.read(path)
    path.write_bytes(path.read_bytes() + b"What I wrote meanwhile.\r\n")
    card.keep(document(figures()))
    lines = path.read_bytes().split(b"\n")
    assert b"What I wrote meanwhile.\r" in lines
    assert all(line.endswith(b"\r") for line in lines[:-1])


def test_a_card_behind_a_link_is_written_where_it_lies(tmp_path: Path) -> None:
    blob = tmp_path / "blob.md"
    blob.write_text(CARD)
    link = tmp_path / "README.md"
    link.symlink_to(blob)
    ModelCard.read(link).keep(document(figures()))
    assert link.is_symlink()
    assert "✔ pass" in blob.read_text()


def test_a_card_that_cannot_be_written_is_said_in_one_line() -> None:
    with pytest.raises(EdgeFlareError, match=r"--card /proc/README\.md: "):
        ModelCard.read(Path("/proc/README.md")).keep(document(figures()))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("README.md", b"\xff\xfe\x00", "no text in UTF-8"),
        ("README.md", END, "not there once"),
        ("README.md", b"%s\n%s\n" % (END, BEGIN), "not there once"),
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
