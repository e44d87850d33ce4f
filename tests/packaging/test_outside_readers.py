"""Files that come from outside are opened by one reader for each kind, and by nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

_READERS: Mapping[str, frozenset[str]] = {
    "numpy.load": frozenset(),
    "numpy.fromfile": frozenset(),
    "numpy.loadtxt": frozenset(),
    "numpy.genfromtxt": frozenset(),
    "numpy.memmap": frozenset({"host/edgeflare/repair/fitting/stepwise_execution.py"}),
    "pickle": frozenset(),
    "cv2.imread": frozenset(),
    "cv2.imdecode": frozenset({"host/edgeflare/domains/image/image_file.py"}),
    "sqlite3": frozenset({"host/edgeflare/record/database.py"}),
    "wave": frozenset({"host/edgeflare/domains/audio/wav_file.py"}),
    "soundfile": frozenset({"host/edgeflare/domains/audio/sound_seeds.py"}),
}
"""What opens files of a kind, and where it may be used."""

_UNPACKING = frozenset({"GetRootAs", "GetRootAsModel", "InitFromPackedBuf", "InitFromObj"})
"""Methods of flatbuffers that unpack a model without a look at its structure."""

_OF_MODELS = frozenset({"host/edgeflare/models/in_place_edit.py"})  # of a file that was read before

_OF_OURS = frozenset(
    {
        "host/edgeflare/conditions/image/digital_corruptions.py",  # decodes what it encoded
        "host/edgeflare/replay/reproduction_scripts/reproduce.py",  # of exports, with numpy alone
        "host/edgeflare/replay/reproduction_scripts/reproduce_operator.py",
        "host/edgeflare/replay/reproduction_scripts/reproduce_tensors.py",
    }
)
"""Files that open what they wrote themselves."""


def used(module: ast.Module) -> Iterator[str]:
    """Yield the dotted names that a module uses of what it imports, by their full names."""
    imported: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for one in node.names:
                imported[one.asname or one.name.partition(".")[0]] = one.name
                yield one.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for one in node.names:
                imported[one.asname or one.name] = f"{node.module}.{one.name}"
                yield f"{node.module}.{one.name}"
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{imported.get(node.value.id)}.{node.attr}"


def opening(module: ast.Module, path: str) -> set[str]:
    """Return what a module uses that opens files of a kind for which it is no reader."""
    names = set(used(module))
    methods = {one.attr for one in ast.walk(module) if isinstance(one, ast.Attribute)}
    unpacking = set() if path in _OF_MODELS else methods & _UNPACKING
    return unpacking | {
        banned
        for banned, readers in _READERS.items()
        if path not in readers | _OF_OURS
        for name in names
        if name == banned or name.startswith(f"{banned}.")
    }


def test_whatever_opens_such_files_is_seen() -> None:
    code = "import numpy as np\nfrom cv2 import imread\nimport wave as w\nnp.load(1)\nw.open(2)\n"
    assert opening(ast.parse(code), "host/x.py") == {"numpy.load", "cv2.imread", "wave"}
    assert opening(ast.parse("schema.Model.GetRootAs(1)"), "host/x.py") == {"GetRootAs"}
    assert not opening(ast.parse("import json\nwave = 1\nwave.real\njson.load(2)"), "host/x.py")


def test_nothing_but_its_reader_opens_a_file_from_outside() -> None:
    files = [*(ROOT / "host").rglob("*.py"), *(ROOT / "operators").rglob("*.py")]
    assert len(files) > 400
    found = {}
    words = [name.rpartition(".")[2].encode() for name in (*_READERS, *_UNPACKING)]
    for path in files:
        content, name = path.read_bytes(), path.relative_to(ROOT).as_posix()
        if any(word in content for word in words):
            found[name] = opening(ast.parse(content), name)
    assert len(found) > 20
    found = {name: opened for name, opened in found.items() if opened}
    assert found == {}


_OF_FOLDERS = ("bench", "conform/record", "fleet/record", "matrix", "run", "survey")
"""Rooms that read what lies in folders of runs, which are passed on between people."""


def test_what_lies_in_folders_of_runs_is_read_as_regular_files_only() -> None:
    files = [one for room in _OF_FOLDERS for one in (ROOT / "host/edgeflare" / room).rglob("*.py")]
    assert len(files) > 150
    reading = {
        path.name
        for path in files
        for node in ast.walk(ast.parse(path.read_bytes()))
        if (isinstance(node, ast.Attribute) and node.attr in ("read_bytes", "read_text"))
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "io.open"))
    }
    assert reading == {"json_file.py", "run_header.py"}  # schemas of our own
