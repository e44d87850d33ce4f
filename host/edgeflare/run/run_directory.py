"""The run directory: where it may be made, what lies in it, and the inputs of the findings."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.array_file import NotArrays, encode_npz, read_npz
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.domains.domain_registry import decoder_of_file
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import FolderKind
from edgeflare.record.folder_contents import BESIDE, DATABASE, list_as
from edgeflare.record.path_inside import path_inside
from edgeflare.regular_file import read_regular

JOURNAL = "run.db"
DOCUMENT = "run.json"
SURVEY_DOCUMENT = "survey.json"
CONFORM_JOURNAL = "conform.db"
CONFORM_DOCUMENT = "conform.json"
REPAIR_DOCUMENT = "repair.json"
CHECK_DOCUMENT = "check.json"
INPUT_FOLDERS = ("findings", "refined", "deviating_seeds", "seeds")

_JOURNALS = (JOURNAL, CONFORM_JOURNAL)

RUN = FolderKind(
    "run",
    files=(
        *(DOCUMENT, SURVEY_DOCUMENT, CONFORM_DOCUMENT),
        *(f"{journal}{end}" for journal in _JOURNALS for end in ("", *BESIDE)),
    ),
    folders=INPUT_FOLDERS,
)
"""Run directories, of whatever command."""

MOST_BYTES = 2**30
"""Largest file of a run directory that is read at once, in bytes: above any input or document."""


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
    def claim(cls, path: Path, *, overwrite: bool) -> tuple[RunDirectory, int]:
        """Make an empty run directory; a run that is there is removed if `overwrite` says so.

        Returns:
            It, and what `os.close` lets other processes work on it by.

        """
        claimed = RUN.claim(path, overwrite=overwrite)
        try:
            claimed.empty()
            list_journals(path)
        except BaseException:
            claimed.close()
            raise
        return cls(path), claimed.lock

    @staticmethod
    def check(path: Path, *, overwrite: bool) -> None:
        """Refuse a path that cannot become a run directory, without touching it."""
        RUN.check(path, overwrite=overwrite)

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
        path = path_inside(self.path, name)
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
        return read_regular(path, MOST_BYTES)

    def store_input(self, folder: str, seed_id: int, input_: Input, domain: Domain) -> StoredInput:
        """Store an input as a lossless file of its domain in a folder of the run directory."""
        name = f"{folder}/{seed_id:06d}{domain.suffix}"
        data = domain.encode_file(input_)
        write_atomically(self.inside(name), data)
        return StoredInput(name, hashlib.sha256(data).hexdigest())

    def load_input(self, name: str) -> Input:
        """Load an input that was stored; the file's suffix says of which domain it is.

        Args:
            name: path of the input relative to the run directory, as `StoredInput` has it.

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
        # A prefix, since numpy has arguments of its own that a name could be.
        content = encode_npz({f"input {name}": row for name, row in fixed.items()})
        write_atomically(self.inside(fixed_name(seed_id)), content)

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
                arrays = read_npz(self.read(fixed_name(seed_id))).arrays
                for name, row in rows.items():
                    row.append(arrays[f"input {name}"])
            except (NotArrays, KeyError, OSError):
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


def list_journals(folder: Path) -> None:
    """List the journals that a run directory may come to hold."""
    for journal in _JOURNALS:
        list_as(folder, journal, DATABASE)


def what_is_in(folder: Path) -> str | None:
    """Return what a command made in a folder, as a noun; None where no file of it says so."""
    for name, noun in _HELD.items():
        if (folder / name).exists():
            return noun
    return None


def files_of(noun: str) -> tuple[str, ...]:
    """Return by which files it is known what a command made in a folder; see `what_is_in`."""
    return tuple(name for name, held in _HELD.items() if held == noun)


_HELD: Mapping[str, str] = {
    CONFORM_JOURNAL: "conformance run",
    CONFORM_DOCUMENT: "conformance run",
    SURVEY_DOCUMENT: "survey",
    JOURNAL: "run of a search, a survey or a replay",
    DOCUMENT: "run of a search, a survey or a replay",
    "rank.json": "ranking",
    "bench.json": "bench",
    REPAIR_DOCUMENT: "repair",
    "candidates/about.json": "repair",
    "matrix.json": "matrix of kernel sets",
}


def holds_conformance(directory: RunDirectory) -> bool:
    """Return whether a run directory is that of a conformance run."""
    return any((directory.path / name).is_file() for name in (CONFORM_DOCUMENT, CONFORM_JOURNAL))


def holds_repair(directory: RunDirectory) -> bool:
    """Return whether a folder is that of a repair, and not of a run."""
    here = directory.path / REPAIR_DOCUMENT
    return here.is_file() and not directory.document.exists() and not directory.journal.exists()


def refuse_other_folder(path: Path) -> None:
    """Refuse a folder that has no journal of a run, and say what it has.

    Args:
        path: where the journal would be.

    """
    folder = path.parent
    _refuse_other_runs(path)
    hint = ""
    if (folder / REPAIR_DOCUMENT).is_file():
        hint = "; it holds a repair: search its model first"
    elif (folder / "candidates").is_dir():
        hint = "; it holds a repair that was stopped: the same command with --resume goes on"
    elif (made := what_is_in(folder)) in ("bench", "ranking"):
        hint = f"; it holds a {made}: name one of the runs in its folders"
    elif (folder / "matrix.json").is_file():
        runs = sorted(folder.glob(f"*/{path.name}"))
        hint = "; it holds a run for each kernel set of a device: name one of them"
        hint += f", such as {runs[0].parent}" if runs else ""
    raise UserError(f"{folder} is no run directory: it has no {path.name}{hint}")


def _refuse_other_runs(path: Path) -> None:
    """Refuse the folder of a run of another kind, which has another journal than is asked for."""
    known = (CONFORM_JOURNAL, CONFORM_DOCUMENT, JOURNAL, DOCUMENT)
    holds = {name for name in known if (path.parent / name).is_file()}
    if path.name == CONFORM_JOURNAL and CONFORM_DOCUMENT in holds:
        raise UserError(
            f"{path.parent} holds a replay of a conformance run, which has no journal to go on by:"
            " leave out --resume, and give --overwrite or another --out"
        )
    if holds & {CONFORM_JOURNAL, CONFORM_DOCUMENT}:
        raise UserError(
            f"{path.parent} holds a conformance run: type `edgeflare report {path.parent}` to see"
            " it; `edgeflare export` and `edgeflare replay` take it too"
        )
    if path.name == CONFORM_JOURNAL and holds & {JOURNAL, DOCUMENT}:
        raise UserError(
            f"{path.parent} holds no conformance run, but a search, a survey or a replay: name"
            " another folder with --out, and leave out --resume to begin one"
        )
