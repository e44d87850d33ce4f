"""Text from outside: what is read at all, and what of it is parsed."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.outside_text import MOST_DEPTH, json_value, read_lines, read_toml
from edgeflare.record.json_file import load_json
from edgeflare.regular_file import read_regular

HOST = Path(__file__).resolve().parents[1] / "host" / "edgeflare"

PARSERS = {
    "json": {"load", "loads", "JSONDecoder"},
    "msgspec": {"json", "toml", "yaml"},
    "yaml": {"load", "safe_load"},
}
"""What parses text, by the module that has it; of tomllib and tomli all does."""

OTHERS = {
    "outside_text.py": "the reader",
    "schemas.py": "only describes types",
    "repair/candidate_store.py": "only encodes",
    "replay/reproduction_scripts/reproduce.py": "runs without edgeflare, beside the file it reads",
    "replay/reproduction_scripts/reproduce_tensors.py": "the same",
    "replay/reproduction_scripts/reproduce_operator.py": "the same",
}


def _parsing(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in PARSERS.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in ("tomllib", "tomli"))
        elif isinstance(node, ast.ImportFrom) and node.module in (*PARSERS, "tomllib", "tomli"):
            names = {one.name for one in node.names}
            yield from names & PARSERS.get(node.module or "", names)


def test_nothing_else_in_the_host_parses_toml_or_json() -> None:
    found = {
        str(path.relative_to(HOST)): sorted(_parsing(ast.parse(path.read_text("utf-8"))))
        for path in HOST.rglob("*.py")
    }
    assert {path for path, calls in found.items() if calls} == set(OTHERS), found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".".join(["a"] * 20_000) + " = 1", "a key has more than 16 parts (near line 1)"),
        ("b = 1\n[" + ' . "a"'.join(["a"] * 20) + "]", "more than 16 parts (near line 2)"),
        ("a = " + "[" * 60_000, "is nested too deeply"),
        ("a = " + "[" * 100 + "]" * 100, "is nested too deeply"),
        ("a = " + "{a = " * 5000, "is nested too deeply"),
        ("a = [" + "1, " * 100_001 + "]", "more than 100,000 values"),
        ("a = 0x" + "f" * 5000, "a is a number of more than 64 bits"),
        ("a = " + "9" * 5000, "Exceeds the limit"),
        ("[a]\nb = [1, nan]", "a.b[1] is nan: write a finite number"),
        ("a = 1e999", "a is inf"),
        ("a = 2020-01-01", "a is a date or a time"),
        (r'a = "\u0000"', "a holds NUL"),
        (r'"\u0000" = 1', "holds NUL"),
        ('a = "' + "x" * 2**20 + '"', "is larger than 1 MiB"),
        ('a = """' + "\\" * 100_001, "is not valid TOML"),
        ("\udcff", "is not valid TOML"),
    ],
)
@pytest.mark.timeout(30)
def test_toml_that_would_fail_or_last_is_refused_in_a_line(
    text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError) as refused:
        read_toml(path)
    assert str(refused.value).startswith(str(path))
    assert said in str(refused.value)
    assert len(str(refused.value)) < len(str(path)) + 400


def test_strings_and_comments_of_toml_may_hold_what_keys_may_not(tmp_path: Path) -> None:
    dotted = "a." * 100
    content = f"one = \"{dotted}\" # {dotted}\ntwo = '{dotted}'\nthree = '''\n{dotted}'''\n"
    content += f'four = """x{dotted}\\"""{dotted}"""\n"{dotted}" = 1.5\nsix.seven = [[-1]]\n'
    path = tmp_path / "x.toml"
    path.write_text(content)
    assert read_toml(path) == {
        "one": dotted,
        "two": dotted,
        "three": dotted,
        "four": f'x{dotted}"""{dotted}',
        dotted: 1.5,
        "six": {"seven": [[-1]]},
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "nested too deeply"),
        ('{"a":' * 400 + "1" + "}" * 400, "nested too deeply"),
        ("9" * 5000, "has more than 64 bits"),
        (str(2**63), "has more than 64 bits"),
        (r'["\ud800"]', "no Unicode"),
        (b'["\xed\xa0\x80"]', "no Unicode"),
        (b"\xff\xfe[\0]\0", "no Unicode"),
        ("[1", "Expecting"),
        ('[{"a": {"b": 1, "c": 2, "b": 1}}]', "it has the key 'b' twice in one place"),
        ('{"a": 1, "\\u0061": 2}', "it has the key 'a' twice"),
        (f'{{"{"k" * 5000}": 1, "{"k" * 5000}": 2}}', "…"),
    ],
)
def test_json_that_would_fail_is_refused_in_a_line(text: str | bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        json_value(text)


def test_json_is_what_it_says() -> None:
    assert json_value('{"a": [1, -2.5, null, "\\ud83d\\ude00"]}') == {"a": [1, -2.5, None, "😀"]}
    assert json_value("[" * MOST_DEPTH + "]" * MOST_DEPTH)
    assert json_value('[{"a": {"a": 1}}, {"a": 2}]') == [{"a": {"a": 1}}, {"a": 2}]


@pytest.mark.parametrize(
    ("data", "refusal"), [(b"\xff", "no text in UTF-8"), (b"a\0b", "holds NUL")]
)
def test_lines_are_text(data: bytes, refusal: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\xef\xbb\xbfone\ntwo")
    assert read_lines(path, 100) == ["one", "two"]
    path.write_bytes(data)
    with pytest.raises(UserError, match=refusal):
        read_lines(path, 100)


def test_what_is_read_is_bounded_and_a_regular_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_regular(path, 100) == b"x" * 100
    with pytest.raises(UserError, match="is larger than"):
        read_regular(path, 99)
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UserError, match="is not a regular file"):
            read_regular(other, 100)
    for absent in (tmp_path, tmp_path / "absent"):
        with pytest.raises(OSError, match="directory"):
            read_regular(absent, 100)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_names_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="is the name of no file"):
        read_regular(tmp_path / name, 100)


def test_no_document_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(UserError, match="is not a regular file"):
        load_json(tmp_path / "run.json")
