"""Files are removed and renamed by `record`, which knows what is ours, and by nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_METHODS = frozenset({"unlink", "rmdir", "rename", "rmtree", "removedirs", "renames"})
_OF_MODULES = frozenset({"os.remove", "os.replace", "shutil.move"})
_WORDS = (b"unlink", b"rmdir", b"rmtree", b"rename", b".replace", b"remove", b"shutil", b"from os")
"""Of which one is in each module that removes or renames files."""

_OWN: Mapping[str, frozenset[str]] = {
    # A tree of this user's cache that no document leads to.
    "host/edgeflare/devices/bundle/build_bundle.py": frozenset({"rename", "rmtree", "unlink"}),
    "host/edgeflare/devices/bundle/tree.py": frozenset({"os.replace", "unlink"}),
    "host/edgeflare/fleet/work/unit_attempt.py": frozenset({"rmdir", "rmtree"}),
    # The marker of a drained host, named by a hash, which goes whoever has written it.
    "host/edgeflare/fleet/record/fleet_folder.py": frozenset({"unlink", "rmdir"}),
    # Temporary folders that it has made and locked.
    "host/edgeflare/devices/transports/scratch.py": frozenset({"rmtree"}),
    # A temporary folder that it has made, which becomes that of a version of the runtime.
    "host/edgeflare/models/runtime_versions.py": frozenset({"rename", "rmtree"}),
    # Tracebacks, known by their first line.
    "host/edgeflare/crash_report.py": frozenset({"unlink"}),
    # A new file that takes the place of the store's only one.
    "host/edgeflare/trust.py": frozenset({"os.replace", "unlink"}),
    # Files that are named by the sha256 of what they hold, and those that become such.
    "agent/edgeflare_agent/model_store.py": frozenset({"os.replace", "unlink"}),
}
"""Where else something is removed or renamed, and by what."""


def removing(module: ast.Module) -> Iterator[str]:
    """Yield what a module calls, or hands on, that removes or renames files."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil"):
            yield from (
                one.name
                for one in node.names
                if one.name in _METHODS or f"{node.module}.{one.name}" in _OF_MODULES
            )
        elif isinstance(node, ast.Attribute):
            if node.attr in _METHODS:
                yield node.attr
            elif (name := ast.unparse(node)) in _OF_MODULES:
                yield name
        elif isinstance(node, ast.Call) and _is_replacing_a_file(node):
            yield "replace"


def _is_replacing_a_file(call: ast.Call) -> bool:
    """Tell whether a call may be of `Path.replace`: those of texts and of structs take more."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "replace"
        and (len(call.args), len(call.keywords)) == (1, 0)
        and ast.unparse(call.func) not in _OF_MODULES
    )


def test_whatever_removes_or_renames_is_seen() -> None:
    code = (
        "import os, shutil\nfrom os import remove\npath.unlink()\nos.replace(a, b)\n"
        "shutil.move(a, b)\npath.replace(b)\ncall(shutil.rmtree)\n"
    )
    names = {"remove", "unlink", "os.replace", "shutil.move", "replace", "rmtree"}
    assert set(removing(ast.parse(code))) == names
    code = "text.replace('a', 'b')\nreplace(plan, seed=1)\nstructs.replace(view, head=2)\n"
    assert not set(removing(ast.parse(code)))


@pytest.mark.slow
def test_nothing_but_record_removes_or_renames_what_a_user_may_have_put_somewhere() -> None:
    rooms = ("host", "agent", "operators", "protos")
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert len(files) > 500
    contents = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in files}
    found = {
        name: frozenset(removing(ast.parse(content)))
        for name, content in contents.items()
        if any(word in content for word in _WORDS)
    }
    found = {
        name: names
        for name, names in found.items()
        if names and not name.startswith("host/edgeflare/record/")
    }
    assert found == _OWN
