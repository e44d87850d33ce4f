"""What packages may add: the table has each group of entry points that is read, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PAGE = ROOT / "docs" / "stability.md"

ROWS = {
    group: (said, (PAGE.parent / link).resolve())
    for group, said, link in re.findall(
        r"^\| `(edgeflare\.\w+)` \| (.+) \| \[.+\]\(([^)#]+).*\) \|$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
}
"""What an object of each group is, and the file that shows one."""


def read_groups(source: str) -> Iterator[tuple[str, str]]:
    """The groups that a file reads, with the base of the classes in them; empty without one."""
    tree = ast.parse(source)
    constants = {
        ast.unparse(target): node.value
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("entry_points"), keywords=[ast.keyword("group", group)]):
                base = ""
            case ast.Call(func=ast.Subscript(ast.Name("InstalledClasses")), args=[group, _, of]):
                base = ast.unparse(of)
            case _:
                continue
        known = constants.get(ast.unparse(group), group)
        if isinstance(known, ast.Constant):  # else a class was given it
            yield str(known.value), base


@cache
def all_groups() -> dict[str, str]:
    """The groups that the source reads, with their bases; only files with either way are parsed."""
    return {
        group: base
        for room in ("agent", "host", "operators", "protos")
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"\b(entry_points\(|InstalledClasses\[)", text := path.read_text("utf-8"))
        for group, base in read_groups(text)
    }


def test_a_group_is_seen_by_either_way_of_reading_it() -> None:
    source = 'G: Final = "a.b"\nentry_points(group=G)\nX = InstalledClasses[C]("a.c", "c", C)\n'
    assert list(read_groups(source)) == [("a.b", ""), ("a.c", "C")]


def test_the_table_has_each_group_that_is_read_and_no_other() -> None:
    assert list(ROWS) == sorted(all_groups())
    packaging = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    ours = re.findall(r'^\[project\.entry-points\."(.+)"\]$', packaging, re.MULTILINE)
    assert set(ours) <= set(ROWS)


@pytest.mark.parametrize("group", ROWS)
def test_a_row_names_the_class_and_a_file_that_shows_one(group: str) -> None:
    said, file = ROWS[group]
    base = all_groups()[group]
    assert f"`{base}`" in said or not base
    assert f'[project.entry-points."{group}"]' in file.read_text(encoding="utf-8")
