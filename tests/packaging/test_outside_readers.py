"""Files that come from outside are opened by one reader for each kind, and by nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_READERS: Mapping[str, frozenset[str]] = {
    "numpy.load": frozenset(),
    "numpy.fromfile": frozenset(),
    "numpy.loadtxt": frozenset(),
    "numpy.genfromtxt": frozenset(),
    "numpy.memmap": frozenset({"host/edgeflare/repair/fitting/tensor_capture.py"}),
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
        "host/edgeflare/release/random_inputs.py",  # of the package
        "host/edgeflare/conditions/image/digital_corruptions.py",  # decodes what it encoded
        "host/edgeflare/replay/reproduction_scripts/reproduce.py",  # of exports, with numpy alone
        "host/edgeflare/replay/reproduction_scripts/reproduce_operator.py",
        "host/edgeflare/replay/reproduction_scripts/reproduce_tensors.py",
    }
)
"""Files that open what they wrote themselves, or what was installed with them."""


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


@pytest.mark.slow
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


_OF_THE_PACKAGE = frozenset(
    {
        "conform/finding_archive.py",
        "devices/bundle/build_bundle.py",
        "devices/bundle/tree.py",
        "devices/remote/on_device.py",
        "devices/remote/deployment.py",
        "replay/reproduction_archive.py",
        "pages/html_page.py",
    }
)
"""What reads files that were installed with EdgeFlare, and such files alone."""

_OF_THE_COMMAND = frozenset(
    {
        "cli/quiet.py",
        "devices/bundle/packages.py",
        "devices/transports/child_agent.py",
        "devices/transports/ssh.py",
        "fleet/work/unit_attempt.py",
    }
)
"""What reads a file that the same command wrote just before."""

_OF_THE_HOST = frozenset(
    {
        "devices/profile_folders.py",  # a file as long as a shipped one
        "devices/lease.py",
        "fleet/cluster/ray_cluster.py",
        "fleet/work/local_disk.py",
        "record/folder_contents.py",  # a part of a file at a time
        "trust.py",
    }
)
"""What reads a file of the system, or one that is the user's alone, or less than a whole file."""


_OF_OPENED_FILES = frozenset(
    {
        "array_file.py",  # archives that the reader opened, and bytes
        "release/assumptions/class_names.py",  # an archive in memory, with a bound
        "cli/standard_streams.py",
        "devices/lease.py",  # after a look at its kind
        "domains/image/image_file.py",  # a file in memory
        "models/associated_files.py",  # an archive in memory, with a bound
        "fleet/work/folder_archive.py",
        "regular_file.py",  # the reader itself
    }
)
"""What reads a file that was opened or looked at before, or that lies in memory."""

_OF_NO_FILE = frozenset(
    {
        "campaign/search_checks.py",
        "devices/remote/remote_shell.py",
        "devices/transports/scratch.py",  # folders, to lock them
        "devices/transports/transport.py",
        "diagnose/inspect/inspect_pair.py",
        "record/folder_lock.py",
    }
)
"""What opens a folder or a device, not a file."""


def reads_by_itself(module: ast.Module) -> bool:
    """Whether a module reads whole files without a bound, or without a look at their kind."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr in ("read_bytes", "read_text"))
        or (isinstance(node, ast.Call) and _opens(node))
        for node in ast.walk(module)
    )


_OPENING = frozenset({"os.fdopen", "io.FileIO", "zipfile.ZipFile"})
"""What opens a file by its first argument, in the mode that is its second."""


_HOW = frozenset({"buffering", "encoding", "errors", "newline"})
"""Arguments of `path.open`, by their names, that do not say whether it reads."""


def _opens(call: ast.Call) -> bool:
    """Whether a call opens a file for reading, as `path.open` does where it has no mode."""
    name = ast.unparse(call.func)
    if name in ("open", "io.open"):
        return True
    if name == "os.open":
        flags = ast.unparse(call)
        return "O_DIRECTORY" not in flags and "O_WRONLY" not in flags
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in _OPENING:
        mode = named.get("mode", call.args[1] if len(call.args) > 1 else None)
        return mode is None or _reads(mode)
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "open"):
        return False
    mode = named.get("mode", call.args[0] if call.args else None)
    return set(named) <= _HOW if mode is None else _reads(mode)


def _reads(mode: ast.expr) -> bool:
    return isinstance(mode, ast.Constant) and str(mode.value).startswith("r")


@pytest.mark.parametrize(
    "line",
    [
        "path.read_bytes()",
        "path.open().read()",
        'path.open(mode="rb")',
        'path.open("rb")',
        'path.open(encoding="utf-8")',
        "open(path)",
        "os.fdopen(os.open(path, os.O_RDONLY))",
        "os.open(path, os.O_RDONLY)",
        'os.fdopen(descriptor, mode="rb")',
        "io.FileIO(path)",
        "zipfile.ZipFile(path)",
        '! path.open("wb")',
        '! path.open(mode="x")',
        "! os.open(path, os.O_WRONLY)",
        '! zipfile.ZipFile(path, "w")',
        "! tarfile.open(fileobj=file)",
        "! read_regular(path, 5)",
    ],
)
def test_a_line_that_reads_a_file_is_seen_and_no_other(line: str) -> None:
    assert reads_by_itself(ast.parse(line.removeprefix("! "))) != line.startswith("!")


def test_files_from_outside_are_read_as_regular_files_with_a_bound() -> None:
    root = ROOT / "host/edgeflare"
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.py")}
    assert len(files) > 400
    reading = {
        name
        for name, content in files.items()
        if any(
            word in content
            for word in (b"read_bytes", b"read_text", b"open(", b"FileIO", b"ZipFile")
        )
        and f"host/edgeflare/{name}" not in _OF_OURS
        and reads_by_itself(ast.parse(content))
    }
    own = _OF_THE_PACKAGE | _OF_THE_COMMAND | _OF_THE_HOST
    assert reading == own | _OF_OPENED_FILES | _OF_NO_FILE
