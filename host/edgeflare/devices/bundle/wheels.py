"""The Python packages of a bundle: which, in which versions, and their files."""

from __future__ import annotations

import fnmatch
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
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
