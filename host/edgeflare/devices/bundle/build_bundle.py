"""Making a bundle, once for the same inputs."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgeflare.devices.bundle.bundle_target import find_target
from edgeflare.devices.bundle.contents import OWN_PACKAGES, Observer, bundle_contents, own_sources
from edgeflare.devices.bundle.packages import pin_runtime
from edgeflare.devices.bundle.tree import pack_tree, unpack_tree
from edgeflare.errors import InfrastructureError
from edgeflare.models.agent_code import package_folder
from edgeflare_protos import __version__

_log = logging.getLogger(__name__)

_KEPT = 3
"""Bundles for the same target and runtime that stay in the cache: today's, and those of other
installations of EdgeFlare."""


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
                tree = bundle_contents(wanted, pinned, cache / "apt", observe)
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
    for folder in (Path(__file__).parent, *map(package_folder, OWN_PACKAGES)):
        for name, content in own_sources(folder).items():
            digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()[:16]


def _remove_all_but_newest(paths: Iterable[Path]) -> None:
    ordered = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in ordered[_KEPT:]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
