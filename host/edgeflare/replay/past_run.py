"""A run that has ended, opened again: what it found, on which pair."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path, PurePath

import numpy as np
from msgspec import structs

from edgeflare.campaign.campaign_context import SEEDS_FOLDER
from edgeflare.core.seeds import Seeds
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profiles, find_run_profiles
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.model_file import check_model_file
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.shape_folding import asks_for_shapes
from edgeflare.pages.facts import count_of
from edgeflare.python_callable import is_callable
from edgeflare.report.entry_words import input_words
from edgeflare.run.derive_document import seeds_that_deviate
from edgeflare.run.load_document import load_document, require_own_seeds
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding, RunDocument
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.trust import Trust, has_changed, is_agreed, keep_agreed


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that has ended.

    Attributes:
        directory: where it lies.
        document: document of the run.
        header: header of the run.
        searched: ids of the seeds from which it searched.
        deviating: ids of the seeds of a survey or a replay that deviate themselves, whatever was
            found from them; empty of a search, which does not search from such.
        deviated: ids of those that did in the survey, if it is one, or a replay of one.
        lies_at: the absolute path that a replay records of it.

    """

    directory: RunDirectory
    document: RunDocument
    header: RunHeader
    searched: frozenset[int]
    deviating: frozenset[int] = frozenset()
    deviated: frozenset[int] = frozenset()
    lies_at: str = ""

    @classmethod
    def open(cls, path: Path, copy_of: Path | None = None) -> PastRun:
        """Open a run directory.

        Args:
            path: path of the run directory.
            copy_of: where the run lies that it is a copy of; None for no copy.

        Raises:
            UserError: it is none.

        """
        directory = RunDirectory(path)
        document = load_document(directory)
        with RunJournal.read(directory.journal) as journal:
            noted = journal.about()
            header = RunHeader.from_json(noted)
            require_own_seeds(document, header, directory)
            searched = frozenset(journal.chains())
            lies_at = os.path.abspath(copy_of or path)
            past = cls(directory, document, header, searched, lies_at=lies_at)
            if SURVEY_KEY in noted or document.replay is not None:
                deviating = frozenset(seeds_that_deviate(journal, header))
                told = noted.get("replay", {}).get("deviated", ())
                deviated = deviating if SURVEY_KEY in noted else frozenset(told)
                past = replace(past, deviating=deviating, deviated=deviated)
            return past

    @property
    def deviations(self) -> list[Finding]:
        """Its verified findings, and the seeds that deviate themselves; by seed."""
        return sorted(self.document.deviations, key=_seed_id)

    @property
    def suite(self) -> list[Finding]:
        """Findings that a replay of this run tries: its deviations, or all that a replay tried."""
        document = self.document
        if document.replay is None:
            return self.deviations
        others = (*document.replay.mended, *document.flaky, *document.unverified)
        return sorted((*document.deviations, *others), key=_seed_id)

    def pair(
        self,
        original: str | None = None,
        compressed: Path | None = None,
        instead: Path | None = None,
        functions: Sequence[str] = (),
    ) -> Pair:
        """Return its pair, with the seeds that the run stored: of its deviations.

        What the run itself names is opened as data only: a Python function is imported only where
        the user names it, or agreed to this very code of it before.

        Args:
            original: where the original lies now, if it was moved, or the Python function that it
                is; it is held to what it was.
            compressed: where the compressed model lies now, likewise.
            instead: another compressed model in its place, whose outputs may be of another kind;
                shapes are folded in it if they were in the run's, and there are any to fold.
            functions: the Python functions of its front ends and post-processing, where the user
                names them again. What is named by one command holds for later ones.

        Raises:
            UserError: a model is gone, or is another than it was; or the run names as a model what
                is no model file.

        """
        said = self.header.pair
        interface = PairInterface.of(said)
        self._refuse_functions(interface, functions)
        decoders = self.header.arms.values()
        kinds = {
            decoder.holds if isinstance(decoder, ClassDecoder) else None for decoder in decoders
        }
        known = kinds.pop() if len(kinds) == 1 else None
        pair = Pair(
            name=said.name,
            original=original or self._recorded("original", ".tflite", ".onnx"),
            compressed=instead or compressed or Path(str(self._recorded("compressed", ".tflite"))),
            seeds=self.directory.path / SEEDS_FOLDER,
            interface=interface if instead else interface.with_outputs(known),
            classes=self.header.classes,
            fold_shapes=said.folded_shapes is not None
            and (instead is None or asks_for_shapes(instead)),
        )
        if tuple(pair.function_hashes()) != said.functions:
            named = ", ".join(interface.functions)
            raise UserError(
                f"the code of {named} is another than it was for {self.directory.path}: put that"
                " file back, or search again with the pair"
            )
        try:
            hashes = pair.model_hashes()
        except UserError as error:
            raise UserError(f"{error}: {_ELSEWHERE}") from None
        for model, sha256 in structs.asdict(hashes).items():
            if sha256 != getattr(said.sha256, model) and not (instead and model == "compressed"):
                raise UserError(
                    f"{getattr(pair, model)} is not the {model} model of {self.directory.path} (its"
                    f" sha256 is another): put that file back, or say where it is with --{model}"
                )
        for function in filter(None, (pair.original, *interface.functions)):
            keep_agreed(function)  # it was named again just now, if it was not kept before
        return pair

    def _refuse_functions(self, interface: PairInterface, named: Sequence[str]) -> None:
        placed = {os.path.abspath(name) if is_callable(name) else name for name in named}
        for function in interface.functions:
            if function not in {*named, *placed} and not is_agreed(function):
                what = "for what stands before or behind its models"
                raise self._untrusted(function, what, "--function")

    def _untrusted(self, function: str, what: str, option: str) -> UserError:
        """Return what is said of a function that the run names and the user did not agree to."""
        why = "no code is imported because a run names it"
        if has_changed(function):
            why = "its code is another than you agreed to"
        return UserError(
            f"{self.directory.path} names the Python function {function} {what}, and {why}: if you"
            f" trust it, name it again with {option} {shlex.quote(function)}"
        )

    def _recorded(self, model: str, *suffixes: str) -> str | None:
        """Return the path of a model as the run has it, where that is the path of a model file."""
        source = getattr(self.header.pair, model)
        if source is None:
            return None
        where, option = self.directory.path, f"--{model}"
        if is_callable(source):
            if is_agreed(source):
                return str(source)
            raise self._untrusted(source, f"as its {model} model", option)
        path = Path(source)
        if path.suffix.lower() not in suffixes:
            raise UserError(
                f"{where} names {source!r} as its {model} model: expected a file that ends in "
                f"{' or '.join(suffixes)}; say where that is with {option}"
            )
        try:
            if path.is_file():
                check_model_file(path)
        except UserError as error:
            raise UserError(f"{error}, or say where that is with {option}") from None
        return str(source)

    def searched_seeds(self, pair: Pair) -> Path | None:
        """Return the seeds that it searched, where the run says, if they are what they were.

        Args:
            pair: as `pair` returns it.

        """
        said = self.header.pair
        seeds = Path(said.seeds)
        try:
            whole = replace(pair, seeds=seeds, interface=PairInterface.of(said))
            return seeds if whole.fingerprint() == said.fingerprint else None
        except UserError:
            return None

    def profiles(self, named: Sequence[str] | None, trust: Trust) -> list[Profile]:
        """Return the devices to ask: those that the user names, or else its own.

        Of its own, shipped emulated ones only: see `find_run_profiles`.

        Args:
            named: what the user names, if anything.
            trust: the user's decision on their profiles.

        Raises:
            UserError: there is no such device, or the user has to name the run's again.

        """
        if named:
            return find_profiles(named, trust)
        return find_run_profiles(self.header.plan.devices)

    def seeds(self, inputs: ModelInputs) -> Seeds:
        """Return the seeds of its deviations, in their order.

        Raises:
            UserError: there is none, they do not fit the shape, or a file is gone or damaged.

        """
        entries = self.suite
        if not entries:
            raise UserError(f"{self.directory.path} {_why_nothing(self.document)}")
        for entry in entries:
            self.files(entry)
        stored = np.stack([self.directory.load_input(entry.seed_file) for entry in entries])
        if stored.shape[1:] != inputs.shape:
            theirs, ours = ("x".join(map(str, shape)) for shape in (stored.shape[1:], inputs.shape))
            raise UserError(
                f"the {input_words(self.document.pair).many} of {self.directory.path} are {theirs},"
                f" but the models take {ours}"
            )
        ids = tuple(entry.seed_id for entry in entries)
        header, targets = self.header, self.header.targets
        return Seeds(
            stored,
            None if header.labels is None else np.array([header.seed_label(id_) for id_ in ids]),
            tuple(entry.seed_file for entry in entries),
            self.directory.load_fixed(ids, inputs.fixed_names),
            ids,
            targets=None if targets is None else targets.of_seeds([*map(header.place, ids)]),
        )

    def files(self, entry: Finding) -> dict[str, bytes]:
        """Return the files of a deviation: its triggering input and its seed, by name.

        Raises:
            UserError: a file is gone or damaged.

        """
        files = {name: self._read(name) for name in (entry.file, entry.seed_file)}
        if hashlib.sha256(files[entry.file]).hexdigest() != entry.sha256:
            raise UserError(
                f"{self.directory.path / entry.file} is not what was stored there: its sha256"
                " is another"
            )
        self._check_seed(entry)
        return files

    def _check_seed(self, entry: Finding) -> None:
        """Hold a seed, of which no hash is kept, to its distance from the triggering input."""
        try:
            image, seed = map(self.directory.load_input, (entry.file, entry.seed_file))
        except InfrastructureError as error:
            raise UserError(str(error)) from None
        same = image.shape == seed.shape and image.dtype == seed.dtype
        apart = self.header.domain.distances(image, seed).l2 if same else None
        if apart is None or not isclose(apart, entry.distortion.l2, abs_tol=1e-6):
            raise UserError(
                f"{self.directory.path / entry.seed_file} is not what was stored there: it is"
                f" not as far from {entry.file} as the seed was"
            )

    def _read(self, name: str) -> bytes:
        try:
            return self.directory.read(name)
        except OSError as error:
            raise UserError(
                f"{self.directory.path / name} cannot be read: {error.strerror}"
            ) from None


def _seed_id(entry: Finding) -> int:
    return entry.seed_id


def finding_number(name: str, files: Mapping[int, str]) -> int | None:
    """Return the number of a finding that is named by it or by its file; None of neither.

    Args:
        name: as the user gives it.
        files: the file of each finding of a run, by its number, which is the seed's id of a search.

    """
    if name.isdecimal() and len(name) <= _MOST_DIGITS:
        return int(name)
    last = PurePath(name).name
    return next((number for number, file in files.items() if PurePath(file).name == last), None)


_MOST_DIGITS = 18
"""Digits that a number has at most: Python refuses to read many thousands of them."""


_ELSEWHERE = "put it back, or say where it is with --original or --compressed"


def _why_nothing(document: RunDocument) -> str:
    """Say why a run has nothing that could be tried again."""
    if document.unverified:
        return (
            f"has {count_of(len(document.unverified), 'finding')} not verified yet: go on with"
            " `edgeflare search … --resume`"
        )
    if document.flaky:
        return f"has {len(document.flaky)} flaky findings only: there is nothing to try again"
    return "found nothing: there is nothing to try again"
