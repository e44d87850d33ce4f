"""What is in a bundle: every file, from where it comes to where it goes.

agent            the script that starts it
lib/             the loader and the system's libraries
python/          the interpreter, as PYTHONHOME has it
packages/        what it imports: the agent, its runtime, and what these need
licenses/        of all of these
bundle.json      versions
"""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from edgeflare import __version__
from edgeflare.devices.bundle.bundle_target import BundleTarget, native_target
from edgeflare.devices.bundle.bytecode import compile_modules
from edgeflare.devices.bundle.debian import Debian, fetch_python
from edgeflare.devices.bundle.debian_python import python_files, python_version
from edgeflare.devices.bundle.libraries import system_libraries
from edgeflare.devices.bundle.requirements import requirements
from edgeflare.devices.bundle.wheels import fetch_wheels, wheel_files, wheel_licences
from edgeflare.models.agent_code import package_folder

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
    python = python_version(debian.files)
    wanted = requirements(runtime, python)
    observe(f"fetching {', '.join(wanted)}")
    with tempfile.TemporaryDirectory(prefix="edgeflare-bundle-") as folder:
        wheels = fetch_wheels(wanted, target, python, debian.glibc, Path(folder))
        packages = {**_packages(wheels), **_own_packages()}
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
    return {
        **compile_modules({**interpreter, **packages}, compiler),
        "agent": _script(target),
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
    places = python_files(debian.files)
    tree = {f"python/{place}": debian.files[path] for place, path in places.items()}
    libraries = system_libraries({**tree, **packages}, debian.files, target)
    tree |= {f"lib/{name}": debian.files[path] for name, path in libraries.items()}
    return tree, {*places.values(), *libraries.values()}


def _packages(wheels: Sequence[Path]) -> Tree:
    return {f"packages/{name}": content for wheel in wheels for name, content in wheel_files(wheel)}


def _own_packages() -> Tree:
    return {
        f"packages/{package}/{name}": content
        for package in OWN_PACKAGES
        for name, content in own_sources(package_folder(package)).items()
    }


def _script(target: BundleTarget) -> bytes:
    script = Path(__file__).with_name("agent.sh").read_text(encoding="utf-8")
    return script.replace("@LOADER@", target.loader).encode()


def _stem(wheel: Path) -> str:
    """Return name and version of a wheel."""
    return "-".join(wheel.name.split("-")[:2])
