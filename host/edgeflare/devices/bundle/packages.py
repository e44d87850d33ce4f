"""The packages of a bundle: those of Python, and those of Debian for another architecture.

Debian's are fetched without root and read without installing. apt runs with a configuration of its
own, from the package sources that this machine has. So it knows nothing of what is installed here,
and changes nothing here.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from edgeflare.devices.bundle.bundle_target import BuildCommandFailed, BundleTarget, run
from edgeflare.errors import InfrastructureError, UserError

# Paths in a wheel that the agent has no use for, wherever they are.
_UNUSED = (
    "*/tests/*",
    "*/include/*",
    "*.pyi",
    "*.pxd",
    "*.pyx",
    "*.h",
    "*.a",
    "*/py.typed",
    "ai_edge_litert/aot/*",
    "ai_edge_litert/tflite/*",
    "ai_edge_litert/tools/*",
    "ai_edge_litert/schema_py_generated.py",
    "ai_edge_litert/*_pb2.py",
    "ai_edge_litert/libLiteRtWebGpuAccelerator.so",
    "ai_edge_litert/vendors/*",  # of NPUs; linked to their makers' libraries, which nobody brings
    "google/protobuf/compiler/*",
    "grpc/beta/*",
    "grpc/_cython/_credentials/*",
    "numpy/distutils/*",
    "numpy/f2py/*",
    "numpy/core/_simd*.so",
    "numpy/_core/_simd*.so",
    "numpy/_core/_*_tests*.so",
)

_LICENCE = re.compile(r"(^|/)(licen[cs]e|copying|notice|authors)[^/]*$", re.IGNORECASE)


def fetch_wheels(
    requirements: Sequence[str],
    target: BundleTarget,
    python: tuple[int, int],
    glibc: tuple[int, int],
    folder: Path,
) -> list[Path]:
    """Fetch exactly these packages, without what they depend on, and return their files.

    Args:
        requirements: the packages, versions pinned.
        target: what they are for.
        python: version of the Python that imports them.
        glibc: version of the C library that they find.
        folder: where they go; empty.

    Raises:
        UserError: there is no pip here, or no wheel for that Python and architecture.
        InfrastructureError: the package index cannot be reached.

    """
    major, minor = python
    # fmt: off
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
        "--dest", str(folder.absolute()), "--no-input", "--disable-pip-version-check",
        "--implementation", "cp", "--python-version", f"{major}.{minor}",
        "--abi", f"cp{major}{minor}", "--abi", "abi3", "--abi", "none",
    ]
    # fmt: on
    for tag in _platforms(target, glibc):
        command += ["--platform", tag]
    try:
        run(
            [*command, *requirements], cwd=folder
        )  # `-m` imports what lies in the working directory
    except BuildCommandFailed as error:
        if "No module named pip" in error.output:
            raise UserError(
                f"{sys.executable} has no pip, and bundles need it: {sys.executable} -m ensurepip"
            ) from None
        if missing := re.search(r"No matching distribution found for (\S+)", error.output):
            raise UserError(
                f"there is no {missing[1]} for Python {major}.{minor} on {target.machine} with"
                f" glibc {glibc[0]}.{glibc[1]}; name another version, as in --runtime"
                " litert==2.3.0"
            ) from None
        raise InfrastructureError(f"cannot fetch packages: {error}") from None
    return sorted(folder.glob("*.whl"))


def wheel_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path, relative to site-packages, and content of what the agent needs of a wheel."""
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            place = _place(name)
            if place is not None:
                yield place, wheel.read(name)


def wheel_licences(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of a wheel's licence texts; its metadata where it brings none."""
    with zipfile.ZipFile(path) as wheel:
        metadata = [name for name in wheel.namelist() if ".dist-info/" in name]
        texts = [name for name in metadata if _LICENCE.search(name)]
        for name in texts or [name for name in metadata if name.endswith("/METADATA")]:
            yield name.rpartition("/")[2], wheel.read(name)


def _platforms(target: BundleTarget, glibc: tuple[int, int]) -> Iterator[str]:
    """Yield the tags of wheels that run there; pip takes those of other machines by name only."""
    major, minor = glibc
    for lesser in range(minor, 4, -1):
        yield f"manylinux_{major}_{lesser}_{target.machine}"
    yield f"manylinux2014_{target.machine}"


def _place(name: str) -> str | None:
    """Return where a wheel's file goes, or None where it is of no use."""
    folder, _, rest = name.partition("/")
    if folder.endswith(".data"):
        kind, _, name = rest.partition("/")
        if kind not in {"purelib", "platlib"}:
            return None
    elif folder.endswith(".dist-info") and rest != "METADATA":
        return None
    unused = name.endswith("/") or any(fnmatch.fnmatchcase(name, rule) for rule in _UNUSED)
    return None if unused else name


# Those of constraints.txt. Pinned, since a bundle made anew is to be the bundle that was tested.
_AGENT = {
    "grpcio": "1.76.0",
    "grpcio-health-checking": "1.76.0",
    "protobuf": "6.33.6",
    "typing-extensions": "4.16.0",
}
_NUMPY = "2.3.5"
_NUMPY_FOR_PYTHON_3_10 = "2.2.6"

# tflite-runtime is built for numpy 1.
_NUMPY_1 = "1.26.4"
_LAST_TFLITE_RUNTIME = "2.14.0"
_LAST_PYTHON_FOR_TFLITE_RUNTIME = (3, 11)

_LITERT = "ai-edge-litert"
_TFLITE_RUNTIME = "tflite-runtime"

# Where this host has no LiteRT that the device could be made equal to.
_USUAL_LITERT = "2.3.0"


def pin_runtime(runtime: str) -> str:
    """Return a runtime as pip takes it, "ai-edge-litert==2.3.0" for "litert".

    Without a version it is the host's own, so that twin and device run the same one; of
    tflite-runtime it is the last.

    Args:
        runtime: "litert" or "tflite-runtime", perhaps with "==VERSION".

    Raises:
        UserError: it is something else.

    """
    name, pinned, wanted = runtime.partition("==")
    if bool(pinned) == bool(wanted):
        if name in {"litert", _LITERT}:
            return f"{_LITERT}=={wanted or _installed(_LITERT, _USUAL_LITERT)}"
        if name == _TFLITE_RUNTIME:
            return f"{_TFLITE_RUNTIME}=={wanted or _LAST_TFLITE_RUNTIME}"
    raise UserError(
        f'unknown runtime "{runtime}"; expected litert or tflite-runtime, perhaps with ==VERSION'
    )


def requirements(runtime: str, python: tuple[int, int]) -> list[str]:
    """Return everything that goes into a bundle, every version pinned.

    Args:
        runtime: as `pin_runtime` returns it.
        python: version of the bundle's Python.

    Raises:
        UserError: there is no such runtime for that Python.

    """
    if runtime.startswith(_TFLITE_RUNTIME):
        if python > _LAST_PYTHON_FOR_TFLITE_RUNTIME:
            raise UserError(
                f"{runtime} needs Python 3.11 or less, and the Debian of this machine's apt"
                f" sources has {python[0]}.{python[1]}; make this bundle in a container of"
                " Debian 12 and copy the file"
            )
        numpy = _NUMPY_1
    else:
        numpy = _NUMPY if python > (3, 10) else _NUMPY_FOR_PYTHON_3_10
    pins = {**_AGENT, "numpy": numpy}
    return [runtime, *(f"{name}=={pin}" for name, pin in sorted(pins.items()))]


def _installed(package: str, otherwise: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise


# Besides Python: the C++ libraries of the runtimes, and the licences that many packages share.
_WANTED = ("python3", "libstdc++6", "libgomp1", "base-files")

_INSTEAD = "make the bundle in a container of Debian 12 or newer, and copy the file"

_PLANNED = re.compile(r"^Inst (\S+) \((\S+) .*\[(\w+)\]\)", re.M)
"""What apt says that it would install: package, version, architecture."""

_ABSENT = re.compile("Unable to locate package|no installation candidate")
_UNREACHABLE = re.compile(
    "(Could not resolve|Temporary failure|Could not connect|Unable to connect|Connection ).*"
)

_FRESH_SECONDS = 3600.0
"""Several bundles made in a row ask for the lists once."""

_DOCUMENTS = "usr/share/doc/"


@dataclass(frozen=True, slots=True)
class Debian:
    """Packages of Debian, laid over each other.

    Attributes:
        versions: version by package.
        files: content by path; a link has the content of the file that it leads to.
        owners: package by path.
        documented_in: the package that has another one's documents, by that other one.

    """

    versions: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    documented_in: dict[str, str] = field(default_factory=dict)

    @property
    def glibc(self) -> tuple[int, int]:
        """Return the version of the C library."""
        major, minor = re.split(r"[.-]", self.versions["libc6"])[:2]
        return int(major), int(minor)

    def licences(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the licence texts of the packages that these files are from, by name."""
        texts: dict[str, bytes] = {}
        for package in sorted({self.owners[path] for path in paths}):
            documented = self.documented_in.get(package, package)
            text = self.files[f"{_DOCUMENTS}{documented}/copyright"]
            texts[f"{package}/copyright"] = text
            for shared in re.findall(rb"/usr/share/common-licenses/([\w.+-]*\w)", text):
                name = shared.decode()
                if f"usr/share/common-licenses/{name}" in self.files:
                    texts[f"common-licenses/{name}"] = self.files[
                        f"usr/share/common-licenses/{name}"
                    ]
        return texts

    def add(self, package: str, version: str, archive: Path) -> None:
        """Lay the files of a package over those that are there."""
        self.versions[package] = version
        with tarfile.open(fileobj=io.BytesIO(_unpacked(archive))) as members:
            for member in members:
                path = member.name.removeprefix("./")
                if member.issym() and path == _DOCUMENTS + package:
                    self.documented_in[package] = member.linkname.rpartition("/")[2]
                if not (member.isfile() or member.issym() or member.islnk()):
                    continue
                try:
                    file = members.extractfile(member)
                except KeyError:
                    continue  # a link that leads into another package, or to a folder
                if file is not None:
                    self.files[path] = file.read()
                    self.owners[path] = package


def fetch_python(target: BundleTarget, folder: Path) -> Debian:
    """Fetch Debian's Python for a target, with all that it depends on.

    Args:
        target: what it is for.
        folder: where apt keeps its lists and what it fetched.

    Raises:
        UserError: there is no apt here, or its sources do not have that architecture.
        InfrastructureError: the sources cannot be reached.

    """
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise UserError(f"{program} is not on this machine, and bundles need it; {_INSTEAD}")
    environment = {**os.environ, "APT_CONFIG": str(_configure(target, folder)), "LC_ALL": "C"}
    install = ["apt-get", "install", "--yes", *_WANTED]
    updated = _update(environment, folder / "updated")
    try:
        plan = run([*install, "--simulate"], environment)
        run([*install, "--download-only"], environment)
    except BuildCommandFailed as error:
        if _ABSENT.search(error.output) and not _UNREACHABLE.search(updated):
            raise UserError(
                f"this machine's apt sources have no Python for {target.debian}; {_INSTEAD}"
            ) from None
        cause = _UNREACHABLE.search(updated)
        said = cause[0] if cause else error
        raise InfrastructureError(f"cannot fetch Debian's packages: {said}") from None
    debian = Debian()
    for package, release, architecture in _PLANNED.findall(plan):
        name = f"{package}_{release.replace(':', '%3a')}_{architecture}.deb"
        debian.add(package, release, folder / "cache" / "archives" / name)
    return debian


def _update(environment: dict[str, str], stamp: Path) -> str:
    """Bring apt's lists up to date, unless they just were, and return what it said.

    Its failure is not the end: a source that has nothing to do with this may be the one that fails.
    """
    if stamp.exists() and time.time() - stamp.stat().st_mtime < _FRESH_SECONDS:
        return ""
    try:
        said = run(["apt-get", "update"], environment)
    except BuildCommandFailed as error:
        return error.output
    if not _UNREACHABLE.search(said):
        stamp.touch()
    return said


def _configure(target: BundleTarget, folder: Path) -> Path:
    """Write apt's configuration, with folders of its own for all that it writes."""
    for path in ("state/lists/partial", "cache/archives/partial"):
        (folder / path).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    configuration = folder / "apt.conf"
    configuration.write_text(
        f'APT::Architecture "{target.debian}";\n'
        f'APT::Architectures {{ "{target.debian}"; }};\n'
        'APT::Install-Recommends "0";\n'
        'APT::Sandbox::User "";\n'
        'Acquire::Languages "none";\n'
        f'Dir::State "{folder}/state";\n'
        f'Dir::State::status "{folder}/status";\n'
        f'Dir::Cache "{folder}/cache";\n',
        encoding="utf-8",
    )
    return configuration


def _unpacked(archive: Path) -> bytes:
    try:
        command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
        return subprocess.run(command, capture_output=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode(errors="replace").strip()
        raise InfrastructureError(f"cannot read a package of Debian: {words}") from None
