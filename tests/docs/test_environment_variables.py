"""Environment variables of our own: the page has each that the source reads, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGE = ROOT / "docs" / "command-line.md"

SOURCES = tuple(
    path
    for package in ("agent", "host", "operators", "protos")
    for path in sorted((ROOT / package).rglob("*"))
    if path.suffix in (".py", ".sh")
)

NAME = r"EDGEFLARE_[A-Z_]+"


def read_by(source: str, *, shell: bool) -> Iterator[str]:
    """The variables that a file reads: names that are strings, and those that a shell expands."""
    yield from re.findall(rf"\$\{{?({NAME})", source)
    if not shell and re.search(NAME, source):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from re.findall(rf"^{NAME}$", node.value)


def told() -> list[str]:
    """The variables of the page's table, in its order."""
    return re.findall(rf"^\| `({NAME})` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    ("source", "shell", "wanted"),
    [
        ('TOKEN = "EDGEFLARE_TOKEN"', False, ["EDGEFLARE_TOKEN"]),
        ('raise UserError("put it into EDGEFLARE_TOKEN")', False, []),
        ('python="${EDGEFLARE_AGENT_EMULATOR-} $python"', True, ["EDGEFLARE_AGENT_EMULATOR"]),
        ("# EDGEFLARE_AGENT_EMULATOR: before the loader", True, []),
    ],
)
def test_what_a_file_reads_is_seen(source: str, shell: bool, wanted: list[str]) -> None:
    assert list(read_by(source, shell=shell)) == wanted


def test_the_page_has_each_variable_that_the_source_reads_and_no_other() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    read = {
        name for path, text in texts.items() for name in read_by(text, shell=path.suffix == ".sh")
    }
    assert sorted(told()) == sorted(read)
    assert {name for text in texts.values() for name in re.findall(NAME, text)} == read
