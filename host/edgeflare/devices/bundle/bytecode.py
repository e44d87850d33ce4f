"""Modules compiled ahead: a read-only bundle could not keep what it compiles on the device."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from edgeflare.devices.bundle.build_command import run
from edgeflare.devices.bundle.tree import write_tree

# The hash of the source takes the place of its time, and nobody checks it, since no source comes
# along. Order and hash seed are fixed, so that the same modules compile to the same bytes.
_PROGRAM = """
import importlib.util, marshal, pathlib, sys
head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")
for path in sorted(pathlib.Path(".").rglob("*.py")):
    source = path.read_bytes()
    code = compile(source, str(path), "exec", dont_inherit=True)
    path.with_suffix(".pyc").write_bytes(
        head + importlib.util.source_hash(source) + marshal.dumps(code)
    )
"""


def compile_modules(tree: Mapping[str, bytes], python: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return a tree of files with every module compiled, and without its source.

    Args:
        tree: the content of files by path.
        python: the tree of a bundle whose Python runs on this machine and has the version that is
            to import the modules.

    """
    with tempfile.TemporaryDirectory(prefix="edgeflare-bundle-") as folder:
        home, sources = Path(folder, "home"), Path(folder, "sources")
        write_tree(python, home)
        write_tree({path: code for path, code in tree.items() if path.endswith(".py")}, sources)
        loader = next(home.glob("lib/ld-linux*"))
        # fmt: off
        run(
            [str(loader), "--inhibit-cache", "--library-path", str(home / "lib"),
             str(home / "python/bin/python"), "-S", "-B", "-c", _PROGRAM],
            environment={"PYTHONHOME": str(home / "python"), "PYTHONHASHSEED": "0"},
            cwd=sources,
        )
        # fmt: on
        compiled = {}
        for path, content in tree.items():
            if path.endswith(".py"):
                compiled[f"{path}c"] = (sources / f"{path}c").read_bytes()
            else:
                compiled[path] = content
    return compiled
