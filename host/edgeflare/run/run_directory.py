"""The run directory: where it may be made, what lies in it, and the inputs of the findings."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import Domain
from edgeflare.core.input import Input
from edgeflare.domains.domain_registry import decoder_of_file
from edgeflare.domains.npz_errors import NOT_AN_NPZ
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.run.run_lock import lock_run

JOURNAL = "run.db"
DOCUMENT = "run.json"
SURVEY_DOCUMENT = "survey.json"
CONFORM_JOURNAL = "conform.db"
CONFORM_DOCUMENT = "conform.json"
INPUT_FOLDERS = ("findings", "refined", "deviating_seeds", "seeds")
MADE_FROM_IT = (
    "explain.json", "report.html", "junit.xml", "findings.csv", "summary.md", "finding-[0-9]*.zip",
    SURVEY_DOCUMENT, "survey.html", "survey.csv", CONFORM_DOCUMENT, "conform.html", "inspect.json",
)  # fmt: skip
"""What other commands write beside a run, as patterns; it goes when another takes the place."""

_KNOWN_BY = (JOURNAL, DOCUMENT, CONFORM_JOURNAL, CONFORM_DOCUMENT)
"""A folder that has one of these is a run directory."""

MOST_BYTES = 2**30
"""Of a file in a run directory that is read at once: larger than any input or document."""


@dataclass(frozen=True, slots=True)
class StoredInput:
    """An input in the run directory: its path relative to it, and the file's sha256."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A run directory."""

    path: Path

    @property
    def journal(self) -> Path:
        """The journal's path."""
        return self.path / JOURNAL

    @property
    def document(self) -> Path:
        """The path of the canonical result."""
        return self.path / DOCUMENT

    @property
    def conform_journal(self) -> Path:
        """The path of the journal of a conformance run."""
        return self.path / CONFORM_JOURNAL

    @classmethod
    def claim(cls, path: Path, *, overwrite: bool) -> RunDirectory:
        """Make an empty run directory; a run that is there is removed if `overwrite` says so.

        Raises:
            UserError: there is something at the path that must not be written over, or another
                process works on it.

        """
        cls.check(path, overwrite=overwrite)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the run directory {path}: {error.strerror}") from None
        lock = lock_run(path)
        try:
            _empty(path)
        finally:
            os.close(lock)
        return cls(path)

    @staticmethod
    def check(path: Path, *, overwrite: bool) -> None:
        """Refuse a path that cannot become a run directory, without touching it.

        Raises:
            UserError: there is something at the path that must not be written over.

        """
        if path.exists() and not path.is_dir():
            raise UserError(f"{path} is a file: name a folder with --out")
        if not path.is_dir() or not any(path.iterdir()):
            return
        if not any((path / name).exists() for name in _KNOWN_BY):
            raise UserError(f"{path} is neither empty nor a run: name another folder with --out")
        if not overwrite:
            raise UserError(
                f"{path} holds a run already: go on with --resume, replace it with --overwrite, "
                "or name another folder with --out"
            )

    def inside(self, name: str) -> Path:
        """Return the path of a file in the run directory that a document or the journal names.

        Run directories are passed between people, and what is in them is not to be believed: each
        name from a document is resolved by this function before it is opened or written.

        Args:
            name: the path relative to the run directory; the file may be absent.

        Raises:
            UserError: the name is absolute, or leaves the run directory by `..` or by a symbolic
                link, or what is there is not a regular file.

        """
        if not isinstance(name, str) or not name or "\0" in name:
            raise UserError(f"{self.path} names {name!r} as a file in it: expected a relative path")
        path = self.path / name
        try:
            base = os.path.realpath(self.path)
            within = f"{os.path.realpath(path)}/".startswith(f"{base.rstrip('/')}/")
        except (OSError, RuntimeError):  # a circle of symbolic links, or a name that is too long
            within = False
        if Path(name).is_absolute() or ".." in Path(name).parts or not within:
            raise UserError(
                f"{self.path} names {name!r}, which is outside of it: a run directory may name only"
                " files of its own, so do not trust this one, or make the run again"
            )
        if os.path.exists(path) and not os.path.isfile(path):  # both bear with any name
            raise UserError(f"{path} is not a regular file: expected one that the run stored")
        return path

    def read(self, name: str) -> bytes:
        """Return the content of a file in the run directory; see `inside`.

        Raises:
            UserError: the name leads out of the run directory, or the file is larger than any that
                a run stores.
            OSError: it cannot be read.

        """
        path = self.inside(name)
        if path.stat().st_size > MOST_BYTES:
            raise UserError(
                f"{path} has {path.stat().st_size:,} bytes: expected one that the run stored,"
                f" of at most {MOST_BYTES:,}"
            )
        return path.read_bytes()

    def store_input(self, folder: str, seed_id: int, one: Input, domain: Domain) -> StoredInput:
        """Store an input as a lossless file of its domain in a folder of the run directory."""
        name = f"{folder}/{seed_id:06d}{domain.suffix}"
        data = domain.encode_file(one)
        write_atomically(self.inside(name), data)
        return StoredInput(name, hashlib.sha256(data).hexdigest())

    def load_input(self, name: str) -> Input:
        """Load an input that was stored; the file's suffix says of which domain it is.

        Args:
            name: its path relative to the run directory, as `StoredInput` has it.

        Raises:
            UserError: the name leads out of the run directory, or the file is too large, or of no
                domain.
            InfrastructureError: the file is gone or damaged.

        """
        try:
            data = self.read(name)
        except OSError:
            data = b""
        try:
            one = decoder_of_file(name)(data)
        except UserError as unknown:
            raise UserError(f"{self.path}: {unknown}") from None
        if one is None:
            raise InfrastructureError(f"{self.path / name} is gone or damaged")
        return one

    def store_fixed(self, seed_id: int, fixed: Mapping[str, NDArray[Any]]) -> None:
        """Store what the models take beside the inputs of a seed, by its names in the pair."""
        buffer = io.BytesIO()
        # A prefix, since numpy has arguments of its own that a name could be.
        arrays: dict[str, Any] = {f"input {name}": row for name, row in fixed.items()}
        np.savez_compressed(buffer, **arrays)
        write_atomically(self.inside(fixed_name(seed_id)), buffer.getvalue())

    def load_fixed(
        self, seed_ids: Sequence[int], names: Collection[str]
    ) -> dict[str, NDArray[Any]]:
        """Load what the models take beside the inputs of seeds: (seeds, *shape) by name.

        Raises:
            UserError: a file leads out of the run directory, or is gone or damaged.

        """
        rows: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        for seed_id in seed_ids if names else ():
            try:
                with np.load(
                    io.BytesIO(self.read(fixed_name(seed_id))), allow_pickle=False
                ) as arrays:
                    for name, row in rows.items():
                        row.append(arrays[f"input {name}"])
            except (*NOT_AN_NPZ, OSError):
                raise UserError(
                    f"{self.path / fixed_name(seed_id)} is gone or damaged: it held"
                    f" {', '.join(names)} of that seed"
                ) from None
        return {name: np.stack(row) for name, row in rows.items()}


FIXED_FILES = "seeds/*.fixed.npz"
"""Where a run keeps what the models take beside the inputs of seeds, as a pattern."""


def fixed_name(seed_id: int) -> str:
    """Return where a run keeps what the models take beside the inputs of a seed."""
    return f"seeds/{seed_id:06d}.fixed.npz"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that whoever reads it sees all of it or none; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _empty(path: Path) -> None:
    """Remove what a run wrote and what was made from it, and nothing else."""
    for name in (*INPUT_FOLDERS, "explain"):
        if (path / name).is_symlink():  # what it leads to is not of the run
            (path / name).unlink()
        shutil.rmtree(path / name, ignore_errors=True)
    journals = (
        f"{journal}{suffix}"
        for journal in (JOURNAL, CONFORM_JOURNAL)
        for suffix in ("", "-wal", "-shm", "-journal")
    )
    for name in (DOCUMENT, *journals, *MADE_FROM_IT):
        for file in path.glob(name):
            file.unlink(missing_ok=True)
