"""Names from documents become paths in one function; all other parts of paths are known here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

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
        annotated = [node for node in nodes if isinstance(node, ast.arg) and node.annotation]
        others = {one.arg for one in annotated if ast.unparse(one.annotation or one) != "int"}
        self._numbers = {one.arg for one in annotated} - others
        self._paths = {one.arg for one in annotated if is_of_paths(one.annotation)}
        self._paths |= {
            node.name
            for node in nodes
            if isinstance(node, ast.FunctionDef) and is_of_paths(node.returns)
        }
        assigned = [
            node
            for node in nodes
            if isinstance(
                node, (ast.Assign, ast.NamedExpr, ast.withitem, ast.For, ast.comprehension)
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
            self._paths |= {target.id for target in targets if isinstance(target, ast.Name)}

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
                self._is_constant(value.value) or ast.unparse(value.value) in self._numbers
                for value in node.values
                if isinstance(value, ast.FormattedValue)
            )
        return isinstance(node, ast.Constant) or (
            isinstance(node, ast.Starred) and self._is_constant(node.value)
        )

    @contextmanager
    def _of_constants(self, loops: list[ast.comprehension] | list[ast.For]) -> Iterator[None]:
        """Take the variables of loops over constants for constants while the context lasts."""
        names = [ast.unparse(loop.target) for loop in loops if self._is_constant(loop.iter)]
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
            f"{within}: {ast.unparse(part)}" if within else ast.unparse(part)
            for part in parts
            if not self._is_constant(part)
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


BY_THE_USER: Final = "the user's own option or file, which may name any place"
OF_A_PATH: Final = "the name of a file that is there, or was just named"
OF_OURS: Final = "one of a fixed set of names of ours"
CHECKED: Final = "held to a pattern or quoted right there"
NUMBER: Final = "no path, but a division"
MODEL: Final = (
    "a model of the pair, which the user names, or a run and `PastRun` holds to a model file"
)
SHOWN: Final = "only shown, and never opened"
LISTED: Final = "held to the folder by `path_inside`, or the name of a file that is there"
STRATEGY: Final = "a strategy that is installed, and a number"
SYSTEM: Final = "the interpreter or the system says it"

KNOWN_JOINS: Final[Mapping[str, str]] = {
    "agent/edgeflare_agent/__main__.py _Parser._print_message: os.devnull": SYSTEM,
    "agent/edgeflare_agent/__main__.py _default_store: f'edgeflare-{os.getuid()}'": OF_OURS,
    "agent/edgeflare_agent/__main__.py _default_store: tempfile.gettempdir()": SYSTEM,
    "agent/edgeflare_agent/model_store.py ModelStore._path: sha256 + _SUFFIX": CHECKED,
    "agent/edgeflare_agent/runtime/compiled/compiled_runtime.py "
    "CompiledRuntime.offers: _LIBRARIES['compiled-cpu']": OF_OURS,
    "agent/edgeflare_agent/runtime/compiled/compiled_runtime.py "
    "CompiledRuntime.offers: found.origin": SYSTEM,
    "agent/edgeflare_agent/runtime/worker.py "
    "_open: order.model": "the file that the server has just stored",
    "bench/grid.py BenchRun.run: f'{self.plan.strategy}-{self.plan.rng_seed}'": STRATEGY,
    "bench/grid.py BenchRun.run: self.pair.folder_name": "the plain name of the pair's folder",
    "campaign/coverage_phase.py "
    "CapturedArm.__init__: str(pair.original if arm is Arm.ORIGINAL else pair.executed)": MODEL,
    "campaign/non_finite_outputs.py begins: str(path)": MODEL,
    "release/check_run.py CheckFolder.keep_input: name": OF_OURS,
    "fleet/command_job.py AdditionJob.is_put: made.name": OF_A_PATH,
    "fleet/command_job.py AdditionJob.is_put: self.added[0]": OF_OURS,
    "fleet/command_job.py AdditionJob.result: self.added[0]": OF_OURS,
    "cli/command_on_fleet.py add_on_fleet: added[0]": OF_OURS,
    "cli/agent.py _copy: path.name": OF_A_PATH,
    "fleet/command_job.py CommandJob.place: unit.name": "a class of devices, made a plain name",
    "fleet/command_job.py command_place: class_name": "a class of devices, made a plain name",
    "cli/export.py _export_operator: f'finding-{number}.zip'": "a whole number",
    "cli/kernel_set_matrix.py compare_kernel_sets.compared: taken.kernels": OF_OURS,
    "matrix/kernel_set_runs.py KernelSetRunner.look: profile.kernels": OF_OURS,
    "matrix/kernel_set_runs.py KernelSetRunner._run_each: profile.kernels": OF_OURS,
    "cli/command_on_fleet.py make_only_run: cell.run": STRATEGY,
    "report/model_explorer_overlay.py "
    "OverlayFiles._folder: _FOLDER.format(seed_id)": "a whole number",
    "cli/quiet.py _silence: os.devnull": SYSTEM,
    "shipped_files.py shipped_folders: in_checkout": OF_OURS,
    "shipped_files.py shipped_folders: in_wheel": OF_OURS,
    "pages/html_page.py packaged: name": OF_OURS,
    "schemas.py schemas: f'{name}.schema.json'": OF_OURS,
    "cli/conformance_replay.py replay_on_versions: f'versions-{directory.path.resolve().name}'": (
        BY_THE_USER
    ),
    "release/phases/measurement_phases.py try_operators: folder": BY_THE_USER,
    "record/folder.py new_folder: f'{name}-{datetime.now():%Y%m%d-%H%M%S-%f}'": BY_THE_USER,
    "fleet/command_job.py GridJob._gathered: cell.run": STRATEGY,
    "conditions/condition_choice.py chosen_conditions: text.strip()": BY_THE_USER,
    "conform/execution/pack_runner.py "
    "PackRunner._attempt: self._folder.name": "a temporary folder of ours",
    "conform/finding_archive.py _script_of_runtime: f'on_{kernels}.py'": OF_OURS,
    "conform/record/finding_files.py stored_model: name": SHOWN,
    "crash_report.py keep_traceback: tempfile.gettempdir()": SYSTEM,
    "devices/agent_lease.py _command: sys.argv[0]": SYSTEM,
    "devices/bundle/build_bundle.py _fetch_python: target.debian": OF_OURS,
    "devices/bundle/packages.py fetch_python: name": "a package that apt has just named",
    "devices/bundle/tree.py write_tree: path": "a file of those packages",
    "devices/lease.py lease: _file_name(device)": "the name quoted, or its hash",
    "cli/doctor.py check_npu: found.origin": SYSTEM,
    "devices/profile_keys.py _read_path: os.path.expanduser(read_text(folder, value))": BY_THE_USER,
    "devices/transports/child_agent.py "
    "ChildAgent.start: self.folder / 'log'": "a temporary folder of ours",
    "devices/transports/scratch.py "
    "ScratchFolder.__init__: tempfile.mkdtemp(prefix=_PREFIX)": SYSTEM,
    "devices/transports/scratch.py _sweep: tempfile.gettempdir()": SYSTEM,
    "errors.py path_suggestion: *rest": BY_THE_USER,
    "fleet/record/fleet_folder.py FleetFolder._name_in: kept": OF_OURS,
    "fleet/record/fleet_folder.py FleetFolder._of_unit: kept": OF_OURS,
    "fleet/record/fleet_folder.py "
    "FleetFolder._of_unit: self._name_in(kept, f'{name}{end}')": CHECKED,
    "fleet/record/fleet_folder.py FleetFolder.beside: name": OF_OURS,
    "fleet/record/fleet_folder.py FleetFolder.beside: os.path.abspath(run)": BY_THE_USER,
    "fleet/record/fleet_folder.py FleetFolder.inner: name": OF_OURS,
    "fleet/work/folder_archive.py _files: file": OF_A_PATH,
    "fleet/work/folder_archive.py archive_folder: str(at)": "a whole number",
    "fleet/work/unit_attempt.py _folder: order.campaign": "the sha256 of what the head asks for",
    "fleet/work/unit_attempt.py "
    "_folder: tempfile.mkdtemp(prefix=f'{order.unit}-{order.number}-', dir=campaign)": SYSTEM,
    "fleet/work/unit_attempt.py _run_in: f'given-{at}'": "a whole number",
    "models/agent_code.py package_folder: spec.origin": SYSTEM,
    "models/model_probe.py HostProbe.__init__: self._folder.name": "a temporary folder of ours",
    "models/pair.py Pair._original_files: self.original": MODEL,
    "models/pair.py Pair.original_file: self.original": MODEL,
    "models/pair_file.py _placed: os.path.expanduser(source)": BY_THE_USER,
    "models/pair_file.py _settings: os.path.expanduser(anchors)": BY_THE_USER,
    "models/runtime_versions.py _make: mkdtemp(prefix=f'.{name}-', dir=folder.parent)": (
        "a temporary folder of ours"
    ),
    "models/runtime_versions.py _put: f'{made.name}-broken'": "a temporary folder of ours",
    "models/runtime_versions.py runtime_python: name": "held to `is_version` where it is read",
    "models/runtime_versions.py runtime_python: sys.executable": SYSTEM,
    "models/model_file.py temporary_model: f'{stem}.tflite'": OF_OURS,
    "diagnose/layer_graphs.py tflite_original: pair.original": MODEL,
    "pytest_plugin.py EdgeFlare._next_folder: f'{self._folder}-{self._runs}'": BY_THE_USER,
    "pytest_results.py _message: worst.file": SHOWN,
    "pytest_plugin.py edgeflare: _file_name(request.node.nodeid)": CHECKED,
    "python_callable.py callable_files: found.origin": SYSTEM,
    "rank/model_measurements.py search_all: cell.run": STRATEGY,
    "rank/rank_section.py _accuracy: right.inputs": NUMBER,
    "record/database.py _ahead: f'{path}-wal'": OF_A_PATH,
    "record/database.py require_regular_files: f'{path}{beside}'": OF_A_PATH,
    "record/atomic_file.py _write_atomically: f'.{path.name}.{secrets.token_hex(4)}'": OF_A_PATH,
    "record/atomic_file.py _write_atomically: unfinished.name": OF_A_PATH,
    "record/folder.py ClaimedFolder.require_unchanged: name": LISTED,
    "record/folder.py _files: name": LISTED,
    "record/folder.py _is_stage: at": OF_OURS,
    "record/folder.py _list_all: name": LISTED,
    "record/folder.py remove_documents: name": OF_OURS,
    "record/folder.py _require_folders: parent": LISTED,
    "record/folder.py ClaimedFolder.replaced: name": LISTED,
    "record/folder.py _roll_forward: name": LISTED,
    "record/folder.py mend: name": LISTED,
    "record/folder.py require_ours: name": LISTED,
    "record/folder_contents.py FolderContents.knows: inner": "held to the folder by `path_inside`",
    "record/folder_contents.py unfinished_state: f'.{path.name}.new'": OF_A_PATH,
    "record/folder_contents.py present: os.path.realpath(folder)": "the folder itself",
    "record/folder_contents.py present.is_there: at": OF_A_PATH,
    "record/path_inside.py path_inside: name": "the function itself",
    "repair/fit_inputs.py _of_steps: str(pair.original)": MODEL,
    "repair/fit_inputs.py _encoded: str(opened.pair.original)": MODEL,
    "repair/labelled/architecture_repair.py ArchitectureSearch._path: str(self.pair.original)": (
        MODEL
    ),
    "repair/labelled/checkpoint_repair.py CheckpointTuning.require_pair: str(pair.original)": MODEL,
    "repair/repair_requirements.py original_file: pair.original": MODEL,
    "replay/past_run.py PastRun.pair: str(self._recorded('compressed', '.tflite'))": MODEL,
    "replay/replay_run.py open_replay: past.lies_at": BY_THE_USER,
    "schemas.py schemas: str(files(package) / f'{name}.schema.json')": SYSTEM,
    "replay/reproduction_archive.py _reproduction: entry.seed_file": "its end alone, of a file "
    "that was read",
    "replay/reproduction_archive.py _reproduction: str(pair.original)": MODEL,
    "replay/reproduction_archive.py _scripts: stored": OF_OURS,
    "run/run_directory.py _refuse_other_runs: name": OF_OURS,
    "record/journal.py Journal._require_file: f'{path}-journal'": OF_A_PATH,
    "run/merge/merge_runs.py merge_in_groups: f'{len(paths)}-{begin}'": "whole numbers",
    "run/merge/merge_runs.py _of_file: row[0]": "its last part alone, made a number",
    "run/run_directory.py what_is_in: name": OF_OURS,
    "survey/survey_run.py begin_survey: baseline.name": BY_THE_USER,
}
"""What is joined, by the file, below host/edgeflare but for the agent's, and the function; and the
reason why nobody else chooses where it leads."""


@pytest.mark.slow
def test_no_name_from_a_document_becomes_a_path_elsewhere() -> None:
    """A new entry is right only where no document, journal, archive or peer gives the name."""
    files = [*(ROOT / "host").rglob("*.py"), *(ROOT / "agent").rglob("*.py")]
    contents = {file.relative_to(ROOT).as_posix(): file.read_bytes() for file in files}
    modules = {name: ast.parse(one) for name, one in contents.items() if b"Path" in one}
    assert len(modules) > 150
    fields = frozenset(name for module in modules.values() for name in fields_of_paths(module))
    found = {
        name: Joins(modules.get(name) or ast.parse(one), fields).found
        for name, one in contents.items()
        if any(word in one for word in _WORDS)
    }
    assert {
        f"{name.removeprefix('host/edgeflare/')} {one}"
        for name, joined in found.items()
        for one in joined
    } == set(KNOWN_JOINS)
