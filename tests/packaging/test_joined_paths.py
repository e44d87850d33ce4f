"""Names from documents become paths in one function; all other parts of paths are known here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from known_joins import KNOWN_JOINS

ROOT = Path(__file__).parents[2]

_PATHS = frozenset({"Path", "PurePath", "PurePosixPath", "Traversable"})
_OF_PATHS = frozenset({"parent", "parents", "absolute", "resolve", "expanduser"})
_IN_FOLDERS = frozenset({"iterdir", "glob", "rglob"})
_JOINING = frozenset({"joinpath", "with_name", "with_stem", "with_suffix"})
_SHOWING = frozenset({"echo", "print", "say"})
_WORDS = (b"/ ", b"/=", b"Path(", b"open(", b"join", b"with_")
"""Of which one is in each module that joins paths."""


def is_of_paths(annotation: ast.expr | None) -> bool:
    """Tell whether what is annotated is a path, or holds some."""
    return annotation is not None and not _PATHS.isdisjoint(
        re.findall(r"\w+", ast.unparse(annotation))
    )


def fields_of_paths(module: ast.Module) -> Iterator[str]:
    """Yield the names of fields, functions and constants of a module that are paths."""
    for node in ast.walk(module):
        for one in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(one, ast.AnnAssign) and is_of_paths(one.annotation):
                yield ast.unparse(one.target)
        if isinstance(node, ast.FunctionDef) and is_of_paths(node.returns):
            yield node.name
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Path("):
            yield from map(ast.unparse, node.targets)


class Joins(ast.NodeVisitor):
    """Collects what a module joins to paths, but for constants and what is only shown."""

    def __init__(self, module: ast.Module, fields: frozenset[str]) -> None:
        self.found: set[str] = set()
        self._fields = fields
        self._numbers: set[str] = set()
        self._paths: set[str] = set()
        self._constants: list[str] = []
        self._within: list[str] = []
        self._shown = False
        self._learn(list(ast.walk(module)))
        self.visit(module)

    def _learn(self, nodes: list[ast.AST]) -> None:
        """Note which variables of the module are paths, and which are whole numbers alone."""
        annotated = [one for one in nodes if isinstance(one, ast.arg) and one.annotation]
        others = {one.arg for one in annotated if ast.unparse(one.annotation or one) != "int"}
        self._numbers = {one.arg for one in annotated} - others
        self._paths = {one.arg for one in annotated if is_of_paths(one.annotation)}
        self._paths |= {
            one.name
            for one in nodes
            if isinstance(one, ast.FunctionDef) and is_of_paths(one.returns)
        }
        assigned = [
            one
            for one in nodes
            if isinstance(
                one, (ast.Assign, ast.NamedExpr, ast.withitem, ast.For, ast.comprehension)
            )
        ]
        for _ in range(2):  # what is assigned may be made of what is assigned further below
            for one in assigned:
                self._learn_assigned(one)

    def _learn_assigned(
        self, node: ast.Assign | ast.NamedExpr | ast.withitem | ast.For | ast.comprehension
    ) -> None:
        if isinstance(node, ast.withitem):
            targets, value = [node.optional_vars], node.context_expr
        elif isinstance(node, (ast.For, ast.comprehension)):
            targets, value = [node.target], node.iter
        else:
            targets = [*node.targets] if isinstance(node, ast.Assign) else [node.target]
            value = node.value
        if self._is_path(value):
            self._paths |= {one.id for one in targets if isinstance(one, ast.Name)}

    def _is_path(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            known = self._fields | _PATHS | _JOINING | _IN_FOLDERS
            inner = node.args[:1] if name == "sorted" else []
            return name in known or any(map(self._is_path, [node.func, *inner]))
        if isinstance(node, ast.Name):
            return node.id in self._paths or (node.id.isupper() and node.id in self._fields)
        if isinstance(node, ast.Attribute):
            return node.attr in self._fields | _OF_PATHS
        if isinstance(node, (ast.Subscript, ast.Starred)):
            return self._is_path(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._is_path(node.left) or self._is_path(node.right)
        return isinstance(node, ast.BoolOp) and any(map(self._is_path, node.values))

    def _is_constant(self, node: ast.expr) -> bool:
        """Tell whether a part is one whatever is read: of constants, and of whole numbers."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = ast.unparse(node).rpartition(".")[2]
            return name.lstrip("_").isupper() or name in self._constants
        if isinstance(node, (ast.Tuple, ast.List)):
            return all(map(self._is_constant, node.elts))
        if isinstance(node, ast.JoinedStr):
            return all(
                self._is_constant(one.value) or ast.unparse(one.value) in self._numbers
                for one in node.values
                if isinstance(one, ast.FormattedValue)
            )
        return isinstance(node, ast.Constant) or (
            isinstance(node, ast.Starred) and self._is_constant(node.value)
        )

    @contextmanager
    def _of_constants(self, loops: list[ast.comprehension] | list[ast.For]) -> Iterator[None]:
        """Take the variables of loops over constants for constants while the context lasts."""
        names = [ast.unparse(one.target) for one in loops if self._is_constant(one.iter)]
        self._constants += names
        yield
        del self._constants[len(self._constants) - len(names) :]

    def generic_visit(self, node: ast.AST) -> None:
        """Look at what lies in a node."""
        loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        with self._of_constants(loops):
            super().generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Note in which function a join is."""
        self._visit_named(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Note in which class a join is."""
        self._visit_named(node)

    def _visit_named(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        self._within.append(node.name)
        self.generic_visit(node)
        self._within.pop()

    def visit_Raise(self, node: ast.Raise) -> None:
        """Pass over the message of an error."""
        shown, self._shown = self._shown, True
        self.generic_visit(node)
        self._shown = shown

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Pass over what is only shown."""
        if not self._shown:
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Look at what is joined with a slash."""
        if isinstance(node.op, ast.Div) and self._is_path(node.left):
            self._add(node.right)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Look at what is joined with a slash to a variable."""
        if isinstance(node.op, ast.Div) and self._is_path(node.target):
            self._add(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Look at what is joined by a call, or made a path."""
        name = ast.unparse(node.func).rpartition(".")[2]
        is_method = isinstance(node.func, ast.Attribute)
        if is_method and name in _JOINING:
            self._add(*node.args)
        elif name in _PATHS or ast.unparse(node.func) in ("os.path.join", "open"):
            self._add(*(() if name == "open" else node.args[1:]))
            first = node.args[:1]
            self._add(
                *(one for one in first if not isinstance(one, ast.Name) and not self._is_path(one))
            )
        shown, self._shown = self._shown, self._shown or name in _SHOWING
        self.generic_visit(node)
        self._shown = shown

    def _add(self, *parts: ast.expr) -> None:
        within = ".".join(self._within[:2])
        self.found |= {
            f"{within}: {ast.unparse(one)}" if within else ast.unparse(one)
            for one in parts
            if not self._is_constant(one)
        }


FIELDS = frozenset({"path", "path_inside", "FOLDER"})


@pytest.mark.parametrize(
    ("code", "joined"),
    [
        ("def read(run: Path, e): return (run / e.image).read_bytes()", "read: e.image"),
        ("class A:\n def read(self, n): return open(self.path / 'inputs' / n)", "A.read: n"),
        ("place = out.joinpath('a', document['file'])", "document['file']"),
        ("def read(run: Path | None, e): return Path(run, e['file'])", "read: e['file']"),
        ("pathlib.Path('a', e)", "e"),
        ("Path(e['file'])", "e['file']"),
        ("Path(f'{run}/{e.image}')", "f'{run}/{e.image}'"),
        ("with open(f'{run}/{name}') as file: pass", "f'{run}/{name}'"),
        ("path_inside(run, 'a') / name", "name"),
        ("def find() -> Path: pass\nfind() / name", "name"),
        ("[p / name for p in run.iterdir()]", "name"),
        ("for p in sorted(run.glob('*')): p / name", "name"),
        ("def read(runs: list[Path]): return runs[0] / name", "read: name"),
        ("def read(run: Path): run /= name", "read: name"),
        ("run.with_suffix(e['end'])", "e['end']"),
        ("text = f'{one.path / name}'", "name"),
        ("def read(at: str, row): return os.path.join(at, row[0])", "read: row[0]"),
        ("for name in document: print((here.path / name).stat())", "name"),
        ("def find(run: Path, n: str): return run / f'{n}.npz'", "find: f'{n}.npz'"),
        ("inner = one.path\ndef read(name): return inner / name", "read: name"),
        ("FOLDER / name", "name"),
        ("[one.path / name for name in ('a', B)]; one.path / name", "name"),
        ("def find(run: Path, n: int): return run / FOLDER / f'{n:06d}.npz'", ""),
        ("for name in (*NAMES, 'other'): print((here.path / name).stat())", ""),
        ("raise UserError(f'{here.path / name} is gone')", ""),
        ("print(f'{here.path / name} is gone')", ""),
        ("def read(run: Path): return open(run)", ""),
        ("share = wrong / images", ""),
    ],
)
def test_what_is_joined_is_seen(code: str, joined: str) -> None:
    assert Joins(ast.parse(code), FIELDS).found == ({joined} if joined else set())


@pytest.mark.slow
def test_no_name_from_a_document_becomes_a_path_elsewhere() -> None:
    """A new entry is right only where no document, journal, archive or peer gives the name."""
    files = [*(ROOT / "host").rglob("*.py"), *(ROOT / "agent").rglob("*.py")]
    contents = {one.relative_to(ROOT).as_posix(): one.read_bytes() for one in files}
    modules = {name: ast.parse(one) for name, one in contents.items() if b"Path" in one}
    assert len(modules) > 200
    fields = frozenset(name for one in modules.values() for name in fields_of_paths(one))
    found = {
        name: Joins(modules.get(name) or ast.parse(one), fields).found
        for name, one in contents.items()
        if any(word in one for word in _WORDS)
    }
    assert {name: joined for name, joined in found.items() if joined} == {
        name: {*joined} for name, joined in KNOWN_JOINS.items()
    }
