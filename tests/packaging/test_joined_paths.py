"""Names from documents become paths in one function; all other parts of paths are known here."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_PATHS = frozenset({"Path", "PurePath", "PurePosixPath", "Traversable"})
_OF_PATHS = frozenset({"parent", "absolute", "resolve", "expanduser"})
_JOINING = frozenset({"joinpath", "with_name", "with_stem"})
_WORDS = (b"/ ", b"Path(", b"join", b"with_")
"""Of which one is in each module that joins paths."""

_BY_THE_USER = "the user's own option or file, which may name any place"
_OF_A_PATH = "the name of a file that is there, or was just named"
_OF_OURS = "one of a fixed set of names of ours"
_CHECKED = "held to a pattern or quoted right there"
_NUMBER = "no path, but a division"

_KNOWN: Mapping[str, Mapping[str, str]] = {
    "agent/edgeflare_agent/__main__.py": {"f'edgeflare-{os.getuid()}'": _OF_OURS},
    "agent/edgeflare_agent/model_store.py": {"sha256 + _SUFFIX": _CHECKED},
    "agent/edgeflare_agent/runtime/compiled/compiled_runtime.py": {
        "_LIBRARIES['compiled-cpu']": _OF_OURS
    },
    "host/edgeflare/bench/grid.py": {
        "f'{self.plan.strategy}-{self.plan.rng_seed}'": "a strategy that is installed"
    },
    "host/edgeflare/cli/addition_on_fleet.py": {
        "added[0]": _OF_OURS,
        "made.name": _OF_A_PATH,
        "self.added[0]": _OF_OURS,
    },
    "host/edgeflare/cli/agent.py": {"path.name": _OF_A_PATH},
    "host/edgeflare/cli/command_on_fleet.py": {
        "f'{name}-{datetime.now():%Y%m%d-%H%M%S}'": _BY_THE_USER,
        "one": "a class of devices, made a plain name",
        "unit.name": "likewise",
    },
    "host/edgeflare/cli/export.py": {"f'finding-{number}.zip'": "a whole number"},
    "host/edgeflare/cli/kernel_set_matrix.py": {
        "one.kernels": _OF_OURS,
        "profile.kernels": _OF_OURS,
    },
    "host/edgeflare/cli/matrix_options.py": {
        "f'{name}-matrix-{datetime.now():%Y%m%d-%H%M%S}'": _BY_THE_USER
    },
    "host/edgeflare/cli/only_run.py": {"cell.run": "a strategy that is installed, and a number"},
    "host/edgeflare/cli/overlay_files.py": {"_FOLDER.format(seed_id)": "a whole number"},
    "host/edgeflare/cli/replay.py": {"f'{name}-{datetime.now():%Y%m%d-%H%M%S}'": _BY_THE_USER},
    "host/edgeflare/cli/replayed_conformance.py": {"name": _BY_THE_USER},
    "host/edgeflare/cli/report.py": {"file": _OF_OURS},
    "host/edgeflare/cli/run_options.py": {"f'{name}-{datetime.now():%Y%m%d-%H%M%S}'": _BY_THE_USER},
    "host/edgeflare/cli/runs_on_fleet.py": {
        "cell.run": "a strategy that is installed, and a number"
    },
    "host/edgeflare/conform/finding_archive.py": {"f'on_{kernels}.py'": _OF_OURS},
    "host/edgeflare/devices/bundle/contents.py": {"target.debian": _OF_OURS},
    "host/edgeflare/devices/bundle/debian.py": {"name": "a package that apt has just named"},
    "host/edgeflare/devices/bundle/tree.py": {"path": "a file of those packages"},
    "host/edgeflare/devices/lease.py": {"f\"{quote(device, safe='')}.lock\"": _CHECKED},
    "host/edgeflare/devices/profile_keys.py": {
        "os.path.expanduser(read_text(folder, value))": _BY_THE_USER
    },
    "host/edgeflare/fleet/record/fleet_folder.py": {
        "kept": _OF_OURS,
        "name": _OF_OURS,
        "self._name_in(kept, f'{name}{end}')": "held to a plain name by `path_inside`",
    },
    "host/edgeflare/fleet/work/folder_archive.py": {"one": _OF_A_PATH, "str(at)": "a whole number"},
    "host/edgeflare/fleet/work/unit_attempt.py": {
        "f'given-{at}'": "a whole number",
        "order.campaign": "the sha256 of what the head asks for",
    },
    "host/edgeflare/models/pair_file.py": {
        "Path(anchors).expanduser()": _BY_THE_USER,
        "Path(source).expanduser()": _BY_THE_USER,
    },
    "host/edgeflare/models/temporary_model.py": {"f'{stem}.tflite'": _OF_OURS},
    "host/edgeflare/pytest_plugin.py": {"_file_name(request.node.nodeid)": _CHECKED},
    "host/edgeflare/rank/rank_runs.py": {"cell.run": "a strategy that is installed, and a number"},
    "host/edgeflare/rank/rank_sentences.py": {"right.images": _NUMBER},
    "host/edgeflare/record/folder.py": {
        "at": _OF_OURS,
        "name": "held to the folder by `path_inside`, or the name of a file that is there",
        "parent": "likewise",
    },
    "host/edgeflare/record/folder_contents.py": {
        "at": _OF_A_PATH,
        "f'.{path.name}.new'": _OF_A_PATH,
        "f'.{path.name}.{secrets.token_hex(4)}'": _OF_A_PATH,
        "inner": "held to the folder by `path_inside`",
        "unfinished.name": _OF_A_PATH,
    },
    "host/edgeflare/record/path_inside.py": {"name": "the function itself"},
    "host/edgeflare/repair/repair_cost.py": {"before": _NUMBER},
    "host/edgeflare/replay/reproduction_archive.py": {"stored": _OF_OURS},
    "host/edgeflare/run/journal_database.py": {"name": _OF_OURS},
    "host/edgeflare/run/run_directory.py": {"name": _OF_OURS},
    "host/edgeflare/suggestion.py": {"*rest": _BY_THE_USER},
}
"""By the file, what is joined there that is no constant, and why it leads to no other place."""


def is_of_paths(annotation: ast.expr | None) -> bool:
    return annotation is not None and not _PATHS.isdisjoint(
        part.strip() for part in ast.unparse(annotation).split("|")
    )


def fields_of_paths(module: ast.Module) -> Iterator[str]:
    """Yield the names of fields, methods and constants of a module that are paths."""
    for node in ast.walk(module):
        for one in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(one, ast.AnnAssign) and is_of_paths(one.annotation):
                yield ast.unparse(one.target)
            elif isinstance(one, ast.FunctionDef) and is_of_paths(one.returns):
                yield one.name
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
            one for one in nodes if isinstance(one, (ast.Assign, ast.NamedExpr, ast.withitem))
        ]
        for _ in range(2):  # what is assigned may be made of what is assigned further below
            for one in assigned:
                self._learn_assigned(one)

    def _learn_assigned(self, node: ast.Assign | ast.NamedExpr | ast.withitem) -> None:
        if isinstance(node, ast.withitem):
            targets, value = [node.optional_vars], node.context_expr
        else:
            targets = [*node.targets] if isinstance(node, ast.Assign) else [node.target]
            value = node.value
        if self._is_path(value):
            self._paths |= {one.id for one in targets if isinstance(one, ast.Name)}

    def _is_path(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            return self._is_path(node.func) or name in _PATHS | _JOINING
        if isinstance(node, ast.Name):
            return node.id in self._paths or (node.id.isupper() and node.id in self._fields)
        if isinstance(node, ast.Attribute):
            return node.attr in self._fields | _OF_PATHS
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

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Pass over what is only shown."""

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Look at what is joined with a slash."""
        if isinstance(node.op, ast.Div) and self._is_path(node.left):
            self._add(node.right)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Look at what is joined by a call."""
        called = ast.unparse(node.func)
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _JOINING
        is_function = called == "os.path.join" or called in _PATHS
        self._add(*(node.args if is_method else node.args[1:] if is_function else ()))
        self.generic_visit(node)

    def _add(self, *parts: ast.expr) -> None:
        self.found |= {ast.unparse(one) for one in parts if not self._is_constant(one)}


FIELDS = frozenset({"path", "FOLDER"})


@pytest.mark.parametrize(
    ("code", "joined"),
    [
        ("def read(run: Path, entry): return (run / entry.image).read_bytes()", {"entry.image"}),
        ("def read(self, name): return open(self.path / 'inputs' / name)", {"name"}),
        ("place = out.joinpath('a', document['file'])", {"document['file']"}),
        ("def read(run: Path | None, one): return Path(run, one['file'])", {"one['file']"}),
        ("def read(at: str, row): return os.path.join(at, row[0])", {"row[0]"}),
        ("for name in document: print((here.path / name).stat())", {"name"}),
        ("def find(run: Path, n: str): return run / f'{n}.npz'", {"f'{n}.npz'"}),
        ("inner = one.path\ndef read(name): return inner / name", {"name"}),
        ("FOLDER / name", {"name"}),
        ("[one.path / name for name in ('a', B)]; one.path / name", {"name"}),
        ("def find(run: Path, n: int): return run / FOLDER / f'{n:06d}.npz'", set()),
        ("for name in (*NAMES, 'other'): print((here.path / name).stat())", set()),
        ("raise UserError(f'{here.path / name} is gone')", set()),
        ("share = wrong / images", set()),
    ],
)
def test_what_is_joined_is_seen(code: str, joined: set[str]) -> None:
    assert Joins(ast.parse(code), FIELDS).found == joined


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
        name: {*joined} for name, joined in _KNOWN.items()
    }
