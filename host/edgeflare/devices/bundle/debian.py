"""Packages of Debian for another architecture: fetched without root, read without installing.

apt runs with a configuration of its own, from the package sources that this machine has. So it
knows nothing of what is installed here, and changes nothing here.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from edgeflare.devices.bundle.bundle_target import BuildCommandFailed, BundleTarget, run
from edgeflare.errors import InfrastructureError, UserError

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
    for package, version, architecture in _PLANNED.findall(plan):
        name = f"{package}_{version.replace(':', '%3a')}_{architecture}.deb"
        debian.add(package, version, folder / "cache" / "archives" / name)
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
