"""What is in a bundle: every file, from where it comes to where it goes.

agent            the script that starts it
lib/             the loader and the system's libraries
python/          the interpreter, as PYTHONHOME has it
packages/        what it imports: the agent, its runtime, and what these need
licenses/        of all of these
bundle.json      versions
"""

from __future__ import annotations

import fnmatch
import json
import platform
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from edgeflare.devices.bundle.bundle_target import BundleTarget, native_target, run
from edgeflare.devices.bundle.packages import (
    Debian,
    fetch_python,
    fetch_wheels,
    requirements,
    wheel_files,
    wheel_licences,
)
from edgeflare.devices.bundle.tree import is_elf, needed_libraries, write_tree
from edgeflare.errors import InfrastructureError
from edgeflare.models.agent_code import package_folder
from edgeflare_protos import __version__

_VERSION = re.compile(r"^usr/bin/python(3)\.(\d+)$")

# Of the standard library: what serves people, tests, other systems, or libraries left out.
_UNUSED = (
    "EXTERNALLY-MANAGED",
    "*.rst",
    "*.txt",
    "__phello__*",
    "_pydecimal.py",
    "_sysconfigdata__*",
    "config-3*",
    "curses/*",
    "dbm/*",
    "distutils/*",
    "ensurepip/*",
    "idlelib/*",
    "lib2to3/*",
    "pydoc_data/*",
    "sqlite3/*",
    "test/*",
    "*/test/*",
    "*/tests/*",
    "tkinter/*",
    "turtle*",
    "venv/*",
    "wsgiref/*",
    "xmlrpc/*",
    "lib-dynload/_codecs_*",
    "lib-dynload/_crypt.*",
    "lib-dynload/_ctypes_test.*",
    "lib-dynload/_curses*",
    "lib-dynload/_dbm.*",
    "lib-dynload/_hashlib.*",
    "lib-dynload/_sqlite3.*",
    "lib-dynload/_ssl.*",
    "lib-dynload/_test*",
    "lib-dynload/_tkinter.*",
    "lib-dynload/_uuid.*",
    "lib-dynload/_xx*",
    "lib-dynload/nis.*",
    "lib-dynload/ossaudiodev.*",
    "lib-dynload/readline.*",
    "lib-dynload/xx*",
)


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

Observer = Callable[[str], None]
"""Is told in a few words what is being done."""

Tree = dict[str, bytes]
"""The content of files by path."""

OWN_PACKAGES = ("edgeflare_agent", "edgeflare_protos")

_ABOUT_LICENCES = b"""\
The licence texts of what is in this bundle, by package. Programs and libraries under debian/ are
Debian's, unchanged, in the versions that bundle.json names; `apt-get source PACKAGE=VERSION` gives
their source code.
"""


def bundle_contents(target: BundleTarget, runtime: str, apt: Path, observe: Observer) -> Tree:
    """Fetch everything that goes into a bundle, and return it laid out.

    Args:
        target: what it is for.
        runtime: package and version, as `pin_runtime` returns it.
        apt: folder where apt keeps what it fetched.
        observe: is told each step.

    Raises:
        UserError: this machine lacks apt or pip, or there is no such runtime for that Python.
        InfrastructureError: something cannot be fetched.

    """
    debian = _fetch_python(target, apt, observe)
    python = _python_version(debian.files)
    wanted = requirements(runtime, python)
    observe(f"fetching {', '.join(wanted)}")
    with tempfile.TemporaryDirectory(prefix="edgeflare-bundle-") as folder:
        wheels = fetch_wheels(wanted, target, python, debian.glibc, Path(folder))
        files = (file for wheel in wheels for file in wheel_files(wheel))
        packages = {f"packages/{name}": content for name, content in files} | {
            f"packages/{package}/{name}": content
            for package in OWN_PACKAGES
            for name, content in own_sources(package_folder(package)).items()
        }
        licences = {
            f"{_stem(wheel)}/{n}": text for wheel in wheels for n, text in wheel_licences(wheel)
        }
    interpreter, taken = _interpreter(debian, packages, target)
    licences |= {f"debian/{name}": text for name, text in debian.licences(taken).items()}
    native = native_target(platform.machine())
    compiler = interpreter
    if native.machine != target.machine:
        compiler, _ = _interpreter(_fetch_python(native, apt, observe), {}, native)
    observe("compiling modules")
    versions = {
        "agent": __version__,
        "target": target.name,
        "runtime": runtime,
        "wheels": sorted(map(_stem, wheels)),
        "debian": {p: debian.versions[p] for p in sorted({debian.owners[path] for path in taken})},
    }
    script = Path(__file__).with_name("agent.sh").read_text(encoding="utf-8")
    return {
        **_compile_modules({**interpreter, **packages}, compiler),
        "agent": script.replace("@LOADER@", target.loader).encode(),
        "bundle.json": json.dumps(versions, indent=2).encode() + b"\n",
        "licenses/README": _ABOUT_LICENCES,
        **{f"licenses/{name}": text for name, text in licences.items()},
    }


def own_sources(package: Path) -> Tree:
    """Return the source files in the folder of a package of ours."""
    return {
        str(path.relative_to(package)): path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.suffix in {".py", ".sh"}
    }


def _fetch_python(target: BundleTarget, apt: Path, observe: Observer) -> Debian:
    observe(f"fetching Debian's Python for {target.debian}")
    return fetch_python(target, apt / target.debian)


def _interpreter(debian: Debian, packages: Tree, target: BundleTarget) -> tuple[Tree, set[str]]:
    """Return Python with the libraries that it and the packages need, and Debian's paths."""
    places = _python_files(debian.files)
    tree = {f"python/{place}": debian.files[path] for place, path in places.items()}
    libraries = _system_libraries({**tree, **packages}, debian.files, target)
    tree |= {f"lib/{name}": debian.files[path] for name, path in libraries.items()}
    return tree, {*places.values(), *libraries.values()}


def _stem(wheel: Path) -> str:
    """Return name and version of a wheel."""
    return "-".join(wheel.name.split("-")[:2])


def _compile_modules(tree: Mapping[str, bytes], python: Mapping[str, bytes]) -> dict[str, bytes]:
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


def _system_libraries(
    binaries: Mapping[str, bytes], debian: Mapping[str, bytes], target: BundleTarget
) -> dict[str, str]:
    """Return what programs and libraries ask for that is not among themselves, and the loader.

    Args:
        binaries: the content of files by path; those that are no programs or libraries are passed
            over.
        debian: the content of Debian's files by path.
        target: what they are for.

    Returns:
        Paths of Debian's files by the names that libraries are asked for by.

    """
    offered = _offered(debian, target)
    own = {path.rpartition("/")[2] for path in binaries}
    found: dict[str, str] = {}
    wanted = [target.loader, *_needed(binaries.values())]
    while wanted:
        name = wanted.pop()
        if name in own or name in found:
            continue
        if name not in offered:
            raise InfrastructureError(
                f"Debian's packages do not hold {name}, which the agent needs"
            )
        found[name] = offered[name]
        wanted += _needed([debian[offered[name]]])
    return found


def _offered(debian: Mapping[str, bytes], target: BundleTarget) -> dict[str, str]:
    folders = (f"lib/{target.multiarch}/", f"usr/lib/{target.multiarch}/", "lib64/", "usr/lib64/")
    offered = {}
    for path in debian:
        folder, _, name = path.rpartition("/")
        if f"{folder}/" in folders and ".so" in name:
            offered[name] = path
    return offered


def _needed(contents: Iterable[bytes]) -> list[str]:
    return [name for content in contents if is_elf(content) for name in needed_libraries(content)]


def _python_version(files: Mapping[str, bytes]) -> tuple[int, int]:
    """Return the version of the Python that is among Debian's files."""
    for path in files:
        if match := _VERSION.match(path):
            return int(match[1]), int(match[2])
    raise InfrastructureError("Debian's packages do not hold a Python where one was expected")


def _python_files(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return program and standard library: Debian's paths by those below PYTHONHOME."""
    major, minor = _python_version(files)
    library = f"usr/lib/python{major}.{minor}/"
    places = {"bin/python": f"usr/bin/python{major}.{minor}"}
    for path in files:
        if path.startswith(library):
            name = path.removeprefix(library)
            if not any(fnmatch.fnmatchcase(name, rule) for rule in _UNUSED):
                places[path.removeprefix("usr/")] = path
    return places
