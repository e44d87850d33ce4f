"""The command called within the process of the tests, and what it answered."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import jsonschema
import pytest
import typer.main
from matplotlib.figure import Figure

from edgeflare.cli import main

# Typer makes all commands and their options anew at each call, which takes longer than a refusal.
typer.main.get_command = functools.cache(typer.main.get_command)

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = EXAMPLES / "fashion_lenet4"
SMALL = (
    *("--first", "6", "--max-queries", "150", "--chains", "8"),
    *("--shrink", "0", "--within", "none"),
)
"""Options that make a search of the example short."""


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    def complaint(self) -> str:
        """The one line of an error, without its prefix."""
        (line,) = self.err.splitlines()
        assert line.startswith("edgeflare: ")
        return line.removeprefix("edgeflare: ")


def _save_empty(_: Figure, file: IO[Any], **__: object) -> None:
    file.write(b"<svg></svg>" if isinstance(file, io.BytesIO) else "<svg></svg>")


_savers: list[Callable[..., Any]] = [_save_empty]
"""How figures are saved, the last one: eight charts take longer than all else of a page."""


@contextlib.contextmanager
def drawn_figures() -> Iterator[None]:
    """Have commands draw their figures, which are empty elsewhere."""
    _savers.append(Figure.savefig)
    try:
        yield
    finally:
        _savers.pop()


@contextlib.contextmanager
def empty_figures() -> Iterator[None]:
    """Have figures saved without their lines and texts."""
    with patch.object(Figure, "savefig", _savers[-1]):
        yield


def call_here(*arguments: object) -> Said:
    """Call the command within this process, which saves the start of another."""
    out, err = io.StringIO(), io.StringIO()
    with (
        empty_figures(),
        patch.object(sys, "argv", ["edgeflare", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert isinstance(ended.value.code, int)
    return Said(ended.value.code, out.getvalue(), err.getvalue())


def completed(*arguments: object, code: int = 0) -> Said:
    """Call a command that has to end with this code."""
    said = call_here(*arguments)
    assert said.code == code, said
    return said


def refused(*arguments: object, code: int = 2) -> str:
    """Call a command that has to be refused, in one line and no more; return that line."""
    said = completed(*arguments, code=code)
    assert said.out == ""
    return said.complaint()


SCHEMAS = {
    "explain.json": "diagnose/explain.schema.json",
    "inspect.json": "diagnose/inspect/inspect.schema.json",
    "matrix.json": "matrix/matrix.schema.json",
    "rank.json": "rank/rank.schema.json",
    "repair.json": "repair/repair.schema.json",
    "run.json": "run/run.schema.json",
}


def document_of(run: Path, name: str = "run.json") -> dict[str, Any]:
    """Read a document of a run, once it was held to its schema where that is described."""
    content = (run / name).read_bytes()
    if name in SCHEMAS:
        _hold_to_schema(content, SCHEMAS[name])
    document: dict[str, Any] = json.loads(content)
    return document


@functools.lru_cache(maxsize=64)
def _hold_to_schema(content: bytes, schema: str) -> None:
    _validator(schema).validate(json.loads(content))


@functools.cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    described = files("edgeflare").joinpath(*schema.split("/")).read_bytes()
    return jsonschema.Draft202012Validator(json.loads(described))
