"""Making a bundle, once for the same inputs: every file, from where it comes to where it goes.

agent            the script that starts it
lib/             the loader and the system's libraries
python/          the interpreter, as PYTHONHOME has it
packages/        what it imports: the agent, its runtime, and what these need
licenses/        of all of these
bundle.json      versions
"""

from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import json
import logging
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgeflare.devices.bundle.bundle_target import BundleTarget, find_target, native_target, run
from edgeflare.devices.bundle.packages import (
    Debian,
    fetch_python,
    fetch_wheels,
    pin_runtime,
    requirements,
    wheel_files,
    wheel_licences,
)
from edgeflare.devices.bundle.tree import (
    is_elf,
    needed_libraries,
    pack_tree,
    unpack_tree,
    write_tree,
)
from edgeflare.errors import InfrastructureError
from edgeflare.models.agent_code import package_folder
from edgeflare_protos import __version__

_log = logging.getLogger(__name__)

_KEPT = 3
"""Bundles for the same target and runtime that stay in the cache: today's, and those of other
installations of EdgeFlare."""

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

_Tree = dict[str, bytes]
"""The content of files by path."""

_OWN_PACKAGES = ("edgeflare_agent", "edgeflare_protos")

_ABOUT_LICENCES = b"""\
The licence texts of what is in this bundle, by package. Programs and libraries under debian/ are
Debian's, unchanged, in the versions that bundle.json names; `apt-get source PACKAGE=VERSION` gives
their source code.
"""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The agent in one file, with all that it needs from a system but a kernel and /bin/sh.

    Unpacked, it is a folder that may lie anywhere and be read-only; its script `agent` takes the
    options of `python -m edgeflare_agent`.

    Attributes:
        path: the .tar.gz.
        sha256: digest of that file, hexadecimal; the same inputs give the same one.
        target: what it is for.
        runtime: package and version of its runtime, "ai-edge-litert==2.3.0".

    """

    path: Path
    sha256: str
    target: str
    runtime: str


def build_bundle(
    target: str, runtime: str, folder: Path | None = None, observer: Observer | None = None
) -> Bundle:
    """Return a bundle from the cache, or make it: some 60 MB to fetch, half a minute of work.

    Args:
        target: "linux-aarch64", "linux-x86_64" or "android-arm64".
        runtime: "litert" or "tflite-runtime", perhaps with "==VERSION".
        folder: the cache; None for the user's own.
        observer: is told each step of making it.

    Raises:
        UserError: there are no such target or runtime, or this machine lacks apt or pip.
        InfrastructureError: something cannot be fetched or written.

    """
    wanted, pinned = find_target(target), pin_runtime(runtime)
    cache = cache_folder() if folder is None else folder.absolute()
    kind = f"edgeflare-agent-{target}-{pinned.replace('==', '-')}"
    path = cache / "bundles" / f"{kind}-{_inputs(target, pinned)}.tar.gz"
    if not path.exists():
        with _alone(path.parent):
            if not path.exists():  # nobody else made it while this one waited
                observe = observer or _announce(target)
                tree = _bundle_contents(wanted, pinned, cache / "apt", observe)
                observe("packing")
                pack_tree(tree, path)
                _remove_all_but_newest(path.parent.glob(f"{kind}-*.tar.gz"))
    return Bundle(path, hashlib.sha256(path.read_bytes()).hexdigest(), target, pinned)


def unpack_bundle(bundle: Bundle, folder: Path | None = None) -> Path:
    """Return the folder in the cache that a bundle is unpacked in.

    Args:
        bundle: what to unpack, unless that was done before.
        folder: the cache; None for the user's own.

    """
    cache = cache_folder() if folder is None else folder.absolute()
    home = cache / "unpacked" / bundle.sha256[:16]
    if not home.exists():
        with _alone(home.parent), tempfile.TemporaryDirectory(dir=home.parent) as unfinished:
            if not home.exists():
                unpack_tree(bundle.path, Path(unfinished, "bundle"))
                Path(unfinished, "bundle").rename(home)
                _remove_all_but_newest(home.parent.glob("[0-9a-f]*"))
    return home


def cache_folder() -> Path:
    """Return where this user's bundles are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base).absolute() / "edgeflare"


def _announce(target: str) -> Observer:
    """Say once that this takes a while, where nobody shows the steps."""
    _log.warning("making the agent's bundle for %s: once, about a minute", target)
    return _log.debug


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder of the cache, and say plainly what the disk refuses."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # On the folder itself: a lock file could be a link to a file that is then emptied.
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
    except OSError as error:
        place = error.filename or folder
        raise InfrastructureError(f"{place}: {error.strerror or error}") from None


def _inputs(target: str, runtime: str) -> str:
    """Return a hash of what a bundle is made from, save what Debian has at the time."""
    digest = hashlib.sha256(f"{target} {runtime} {__version__}".encode())
    for folder in (Path(__file__).parent, *map(package_folder, _OWN_PACKAGES)):
        for name, content in _own_sources(folder).items():
            digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()[:16]


def _remove_all_but_newest(paths: Iterable[Path]) -> None:
    ordered = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in ordered[_KEPT:]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _bundle_contents(target: BundleTarget, runtime: str, apt: Path, observe: Observer) -> _Tree:
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
            for package in _OWN_PACKAGES
            for name, content in _own_sources(package_folder(package)).items()
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


def _own_sources(package: Path) -> _Tree:
    """Return the source files in the folder of a package of ours."""
    return {
        str(path.relative_to(package)): path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.suffix in {".py", ".sh"}
    }


def _fetch_python(target: BundleTarget, apt: Path, observe: Observer) -> Debian:
    observe(f"fetching Debian's Python for {target.debian}")
    return fetch_python(target, apt / target.debian)


def _interpreter(debian: Debian, packages: _Tree, target: BundleTarget) -> tuple[_Tree, set[str]]:
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
