"""Limits of the code: lengths, complexity, names that mean one thing, and directions of imports."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from grimp import build_graph
from radon.complexity import cc_rank, cc_visit_ast

ROOT = Path(__file__).parents[2]
SOURCES = ("host", "agent", "operators", "protos")
MOST_BODY_LINES = 60
"""From the first statement to the last; signature and docstring are not counted."""

MOST_LINES_OF_PAGES = 80
"""The same where a page is built or a format parsed, from its beginning to its end."""

PAGES_AND_PARSERS = re.compile(r"/(report|shown|page|pages)/|_(parser|reader|page|terminal)\.py")

GENERATED = {"agent_pb2.py", "agent_pb2_grpc.py"}
NAMED_BY_PYTHON = {"__init__", "__main__", "conftest"}


def parsed(*folders: str) -> dict[Path, ast.Module]:
    """Return the syntax trees of all Python files below folders of the project."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    gc.disable()  # which would look at all the trees again and again
    try:
        return {path.relative_to(ROOT): tree(path) for path in paths if path.name not in GENERATED}
    finally:
        gc.freeze()
        gc.enable()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def statements(module: ast.Module) -> Iterator[ast.AST]:
    """Yield all statements, without a look at expressions, which are many more."""
    todo: list[ast.AST] = [module]
    while todo:
        for node in ast.iter_child_nodes(todo.pop()):
            if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                todo.append(node)
                yield node


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in statements(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def most_lines(path: str) -> int:
    return MOST_LINES_OF_PAGES if PAGES_AND_PARSERS.search(path) else MOST_BODY_LINES


def twice(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def test_the_lines_of_a_body_are_counted() -> None:
    code = 'def f(\n    a,\n):\n    """Say.\n\n    More.\n    """\n    1\n\n    2\n'
    assert [body_lines(function) for function in functions(ast.parse(code))] == [3]
    code = 'def f():\n    """Nothing else."""'
    assert [body_lines(function) for function in functions(ast.parse(code))] == [0]


def test_a_function_fits_on_a_screen() -> None:
    trees = parsed(*SOURCES, "benchmarks", "tests", "examples")
    assert len(trees) > 400
    long = {
        f"{path}: {function.name}": lines
        for path, module in trees.items()
        for function in functions(module)
        if (lines := body_lines(function)) > most_lines(str(path))
    }
    assert long == {}


def test_no_function_has_a_complexity_of_rank_d_or_worse() -> None:
    complex_ = {
        f"{path}: {block.name}": block.complexity
        for path, module in parsed(*SOURCES, "benchmarks").items()
        for block in cc_visit_ast(module)
        if cc_rank(block.complexity) > "C"
    }
    assert complex_ == {}


def test_a_class_name_is_used_once() -> None:
    """Classes that one test file has for itself are left out: nobody else meets them."""
    places = defaultdict(list)
    for path, module in parsed(*SOURCES, "benchmarks", "tests/support").items():
        for node in statements(module):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path))
    assert twice(places) == {}


def test_a_module_name_is_used_once_in_its_room() -> None:
    """Benchmarks are named as what they measure, and tests as what they test."""
    places = defaultdict(list)
    for path in parsed(*SOURCES, "tests/support", "benchmarks/support"):
        if path.stem not in NAMED_BY_PYTHON:
            room = path.parts[2] if path.parts[0] in SOURCES else "support"
            places[f"{room}: {path.stem}"].append(str(path))
    assert twice(places) == {}


TEXT_MODES = set("rwaxt+")


def is_text_without_encoding(call: ast.Call) -> bool:
    """Whether a call reads or writes a file as text, in whatever encoding the locale has."""
    if any(keyword.arg == "encoding" for keyword in call.keywords):
        return False
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in ("read_text", "write_text"):
        return True
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in ("open", "fdopen") or ast.unparse(function) == "tarfile.open":
        return False
    given = [*call.args[:2], *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [one.value for one in given if isinstance(one, ast.Constant)]
    modes = [text for text in texts if isinstance(text, str) and set(text) <= TEXT_MODES | {"b"}]
    return not any("b" in mode for mode in modes) if modes else isinstance(function, ast.Name)


def test_files_of_text_name_their_encoding() -> None:
    """A locale without UTF-8 must neither end a command nor change what it writes."""
    silent = [
        f"{path}:{node.lineno}"
        for path, module in parsed(*SOURCES).items()
        if re.search(rb"open\(|_text\(", (ROOT / path).read_bytes())
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and is_text_without_encoding(node)
    ]
    assert silent == []
    faults = "open(p)", "open(p, 'w')", "p.open('a')", "os.fdopen(3, 'w')", "p.read_text()"
    assert all(is_text_without_encoding(next(calls(fault))) for fault in faults)


def calls(code: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))


@pytest.mark.slow
def test_the_rooms_keep_their_directions() -> None:
    checked = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert " 0 broken" in checked.stdout


@pytest.mark.parametrize("package", ["host", "agent", "operators", "protos"])
def test_each_folder_of_modules_is_a_package(package: str) -> None:
    """The linters of imports see no others."""
    folders = {path.parent for path in (ROOT / package).glob("edgeflare*/**/*.py")}
    assert folders
    assert [str(one) for one in folders if not (one / "__init__.py").is_file()] == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = build_graph(
        "edgeflare", "edgeflare_agent", "edgeflare_operators", "edgeflare_protos", cache_dir=None
    )
    imports = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    assert len(imports) > 300
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules
