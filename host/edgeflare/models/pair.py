"""A pair: the original and the compressed model, the seeds, and what the models take and give."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join
from typing import BinaryIO

from msgspec import to_builtins

from edgeflare.errors import UserError, path_suggestion
from edgeflare.models.folder_labels import folder_labels
from edgeflare.models.pair_file import FILE, Settings, read_settings
from edgeflare.models.pair_interface import PairInterface, read_interface
from edgeflare.models.run_pair import DEFAULT_DOMAIN, FoldedShapes, ModelHashes
from edgeflare.python_callable import callable_file, callable_files, is_callable
from edgeflare.regular_file import open_regular
from edgeflare.trust import Request, Trust, granted, keep_agreed

_LONGEST_NAME = 50
"""The most characters of a folder's name, of up to 4 bytes: file systems take 255 bytes, and a date
is added."""


@dataclass(frozen=True, slots=True)
class FoldedFile:
    """The compressed model with its shapes folded; see `fold_shapes`.

    Attributes:
        path: path of the file, for as long as the pair is open.
        sha256: SHA-256 of the file.
        operators: names of the operators that constants replaced, in execution order.
        equal_under: the host's kernel sets under which its outputs were equal to those of the
            user's own file, to the bit; empty until that is proven.
        inputs: number of seeds on which they were equal.

    """

    path: Path
    sha256: str
    operators: tuple[str, ...]
    equal_under: tuple[str, ...] = ()
    inputs: int = 0

    def described(self) -> FoldedShapes:
        """Return what a run keeps of it."""
        return FoldedShapes(
            operators=self.operators,
            sha256=self.sha256,
            equal_under=self.equal_under,
            inputs=self.inputs,
        )


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair as the user describes it; no model is opened yet.

    Attributes:
        name: what reports call it.
        original: path of the original model, or a Python callable (see `open_original`); None
            where only kernels are compared.
        compressed: path of the compressed `.tflite`.
        seeds: an `.npz` file or a folder of files.
        interface: what both models take and give.
        classes: names of the classes; empty where not given.
        notes: assumptions that were made about the pair, a line each for the user.
        fold_shapes: run the compressed model with its shapes folded, on all arms that run it.
        folded: the file of that, while the pair is open; see `with_shapes_folded`.
        gates: limits for a release, by the names of their gates; infinity for no limit.

    """

    name: str
    original: str | None
    compressed: Path
    seeds: Path
    interface: PairInterface = field(default_factory=PairInterface)
    classes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fold_shapes: bool = False
    folded: FoldedFile | None = None
    gates: Mapping[str, float] = field(default_factory=dict)

    @property
    def original_file(self) -> Path | None:
        """The file of the original model; None where it is a callable, or there is none."""
        if self.original is None or is_callable(self.original):
            return None
        return Path(self.original)

    @property
    def executed(self) -> Path:
        """The file that the compressed model's arms run: `compressed`, or its folded form."""
        if self.folded is not None:
            return self.folded.path
        if self.fold_shapes:
            raise ValueError("the shapes of this pair are not folded yet: see with_shapes_folded")
        return self.compressed

    @property
    def folder_name(self) -> str:
        """The name as it is used for folders: without separators and leading dots."""
        readable = re.sub(r"[^\w.-]+", "-", self.name).lstrip(".-")
        return readable[:_LONGEST_NAME] or "pair"

    def fingerprint(self) -> str:
        """Return the sha256 that identifies the pair: models, seeds, and how they are read.

        Moving or renaming files does not change it, but for sub-folders of the seeds, which may be
        labels; class names count only where these are labels by them. Whether shapes are folded
        does not count, since it changes no answer of the host. The file of a Python function that
        makes features or reads outputs counts; what it imports does not.
        """
        digest = hashlib.sha256()
        described = json.dumps(to_builtins(self.interface.described()), sort_keys=True)
        for function in self.interface.functions:
            name = function.rpartition(":")[2]
            described = described.replace(json.dumps(function), json.dumps(name))
        digest.update(described.encode())
        digest.update("".join(self.function_hashes()).encode())
        seed_files = self.interface.domain.seed_files(self.seeds)
        if seed_files and seed_files[0].parent.parent == self.seeds:  # and so all of them
            folders = [seed_file.parent.name for seed_file in seed_files]
            labels = folder_labels(folders, self.classes)
            digest.update(json.dumps([(folder, labels.get(folder)) for folder in folders]).encode())
        for part in (self._original_files(), [self.compressed], seed_files):
            for file in part:
                digest.update(_sha256(file))
            digest.update(b"|")
        if self.original is not None and is_callable(self.original):
            digest.update(self.original.rpartition(":")[2].encode())
        return digest.hexdigest()

    def function_hashes(self) -> list[str]:
        """Return the sha256 of the files of functions that the interface names, in order."""
        files = map(callable_file, self.interface.functions)
        return [_sha256(file).hex() for file in files if file is not None]

    def model_hashes(self) -> ModelHashes:
        """Return the sha256 of both models' files; None for an original that has none."""
        (original,) = [*self._original_files(), None][:1]
        return ModelHashes(
            original=None if original is None else _sha256(original).hex(),
            compressed=_sha256(self.compressed).hex(),
        )

    def _original_files(self) -> Iterator[Path]:
        if self.original is None:
            return
        file = callable_file(self.original) if is_callable(self.original) else Path(self.original)
        if file is not None:
            yield file


def load_pair(
    folder: Path | None = None,
    given: Settings | None = None,
    trust: Trust | bool = False,
    seeds_option: str = "--seeds",
) -> Pair:
    """Load a pair from its folder, from flags, or from both; flags win.

    Nothing of it is imported or executed.

    Args:
        folder: holds `pair.toml`; or the path of such a file. None for a pair by flags alone,
            where preprocessing that is not given means pixel / 255.
        given: what the flags say; their paths are relative to the working directory.
        trust: the user's decision on Python functions that `pair.toml` names: as the original, as a
            front end, or for post-processing.
        seeds_option: the option that gives the command its seeds, for messages; empty for a command
            that takes pair folders alone, and for a call from Python.

    Raises:
        UserError: there is no such folder, a key or a value is wrong, something is missing, or a
            callable needs the user's trust and does not have it.

    """
    given = given or Settings()
    trust = granted(trust) if isinstance(trust, bool) else trust
    options = f"--original, --compressed and {seeds_option}" if seeds_option else ""
    file = None if folder is None else _file(folder, options)
    said = given if file is None else given.over(read_settings(file))
    if said.compressed is None:
        raise UserError(_missing(file, "compressed", "compressed.tflite"))
    if said.seeds is None:
        raise UserError(_missing(file, "seeds", "seeds.npz", seeds_option))
    name = said.name or (file.resolve().parent.name if file else Path(said.compressed).stem)
    try:
        interface = read_interface(said, from_file=file is not None)
    except UserError as error:
        raise UserError(f"{file}: {error}" if file else str(error)) from error
    if file is not None:
        original = said.original if given.original is None else None
        _require_trust(file, (original, *interface.functions), trust)
    if trust.keeps:  # what is loaded here is agreed to, by what was typed at the latest
        for function in filter(None, (said.original, *interface.functions)):
            keep_agreed(function)
    return Pair(
        name=name,
        original=said.original,
        compressed=Path(said.compressed),
        seeds=Path(said.seeds),
        interface=interface,
        classes=tuple(said.classes or ()),
        notes=tuple(_assumed(said)) if file is None else (),
        fold_shapes=bool(said.fold_shapes),
        gates=said.gates or {},
    )


def _assumed(said: Settings) -> Iterator[str]:
    """Yield what is assumed of a pair by flags alone, a line each."""
    as_usual = said.inputs is None and said.domain in (None, DEFAULT_DOMAIN)
    if as_usual and not said.says_values:
        yield (
            "no preprocessing was given, so model input = pixel / 255; say --scale, --mean and "
            "--std, or --preset, where the models were trained on something else"
        )


def model_or_compressed(path: Path) -> Path:
    """Return the path of a model: the path itself, or the compressed model of the pair that it is.

    Raises:
        UserError: the pair cannot be read, or names no compressed model.

    """
    if not path.is_dir() and path.suffix != ".toml":
        return path
    file = _file(path, "the path of a .tflite file")
    compressed = read_settings(file).compressed
    if compressed is None:
        raise UserError(_missing(file, "compressed", "compressed.tflite"))
    return Path(compressed)


def _require_trust(file: Path, functions: Sequence[str | None], trust: Trust) -> None:
    """Refuse functions that a `pair.toml` names, unless the user trusts them."""
    for function in functions:
        if function is None or not is_callable(function):
            continue
        code = callable_files(function)
        contents = {"pair.toml": _content(file)}
        contents |= {f"code {at}": _content(path) for at, path in enumerate(code)}
        where = "" if not code or str(code[-1]) in function else f", in {code[-1]}"
        trust.require(
            Request(
                f"{file} names the Python function {function}{where}",
                contents,
                complete=bool(code),
            )
        )


def _file(folder: Path, options: str) -> Path:
    """Return the file of a pair.

    Args:
        folder: the folder, or the file itself.
        options: what may be given in its place, for messages; empty for nothing.

    Raises:
        UserError: it is not there.

    """
    file = folder / FILE if folder.is_dir() or folder.suffix != ".toml" else folder
    if not folder.is_dir() and not file.is_file():
        like = path_suggestion(folder, lambda path: (path / FILE).is_file())
        instead = f", or {options}" if options else ""
        raise UserError(
            f"there is no pair folder {folder}{like}: give a folder that holds a {FILE}{instead}"
        )
    if not file.is_file():
        original, compressed, seeds = (
            str(folder / name) if (folder / name).exists() else name
            for name in ("original.tflite", "compressed.tflite", "seeds.npz")
        )
        files = (original, compressed, "--inputs", seeds, "--write-pair", str(folder))
        command = join(("edgeflare", "check", *files))
        instead = f"; or give {options}" if options else ""
        raise UserError(f"{folder} holds no {FILE}: {command} writes one{instead}")
    return file


def _missing(file: Path | None, key: str, example: str, option: str = "") -> str:
    if file is None:
        option = option or f"--{key}"
        return f"{key} is not given: say {option} with a path such as {example}, or a pair folder"
    return f'{file}: {key} is missing: add its path, such as {key} = "{example}"'


def _sha256(file: Path) -> bytes:
    digest = hashlib.sha256()
    with _opened(file) as content:
        # No more than there is: the room for a whole block is more than most files of a set.
        size = os.fstat(content.fileno()).st_size
        while block := content.read(min(size + 1, 2**20)):
            digest.update(block)
    return digest.digest()


def _content(file: Path) -> bytes:
    with _opened(file) as content:
        return content.read()


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    """Open a file of a pair; pipes and devices are refused, since they may never end."""
    try:
        with open_regular(file) as content:
            yield content
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error
