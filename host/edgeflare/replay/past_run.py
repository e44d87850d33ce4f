"""A run that has ended, opened again: what it found, on which pair."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.campaign.about import About
from edgeflare.campaign.assembly import ImageShape
from edgeflare.campaign.journal import Journal
from edgeflare.campaign.run_directory import RunDirectory
from edgeflare.campaign.triggers import SEEDS_FOLDER
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.models.preprocess import Preprocess
from edgeflare.models.seeds import Seeds
from edgeflare.report.document import Document, load_document


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that has ended.

    Attributes:
        directory: where it lies.
        document: its document.
        about: what it was.

    """

    directory: RunDirectory
    document: Document
    about: About

    @classmethod
    def open(cls, path: Path) -> PastRun:
        """Open a run directory.

        Raises:
            UserError: it is none.

        """
        directory = RunDirectory(path)
        document = load_document(directory)
        journal = Journal.open(directory.journal)
        try:
            return cls(directory, document, About.from_json(journal.about()))
        finally:
            journal.close()

    @property
    def deviations(self) -> list[Document]:
        """Its verified findings, and the seeds that deviate themselves; by seed."""
        entries = (*self.document["findings"], *self.document["deviating_seeds"])
        return sorted(entries, key=lambda entry: int(entry["seed_id"]))

    def pair(self, compressed: Path | None = None) -> Pair:
        """Return its pair, with another compressed model if one is given.

        Its seeds are those that the run stored: of its deviations.

        Raises:
            UserError: a model is gone, or is another than it was.

        """
        said = self.about.pair
        settings: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in said["preprocess"].items()
        }
        outputs = {decoder.outputs for decoder in self.about.arms.values()}
        pair = Pair(
            name=said["name"],
            original=said["original"],
            compressed=Path(said["compressed"]),
            seeds=self.directory.path / SEEDS_FOLDER,
            preprocess=Preprocess(**settings),
            classes=self.about.classes,
            outputs=outputs.pop() if len(outputs) == 1 else None,
        )
        now = replace(pair, compressed=compressed or pair.compressed)
        for model, sha256 in now.model_hashes().items():
            if sha256 != said["sha256"][model] and not (compressed and model == "compressed"):
                raise UserError(
                    f"{getattr(pair, model)} is not the {model} model of {self.directory.path} any"
                    " more: put that file back"
                    + (", or name the new one with --compressed" if model == "compressed" else "")
                )
        return now

    def seeds(self, shape: ImageShape) -> Seeds:
        """Return the seeds of its deviations, in their order.

        Raises:
            UserError: there is none, they do not fit the shape, or a file is gone or damaged.

        """
        entries = self.deviations
        if not entries:
            raise UserError(f"{self.directory.path} found nothing: there is nothing to try again")
        for entry in entries:
            self.files(entry)
        images = np.stack([self.directory.load_image(entry["seed_image"]) for entry in entries])
        if images.shape[1:] != shape:
            theirs, ours = ("x".join(map(str, one)) for one in (images.shape[1:], shape))
            raise UserError(
                f"the images of {self.directory.path} are {theirs}, but the models take {ours}"
            )
        labels = self.about.labels
        return Seeds(
            images,
            None if labels is None else np.array([labels[entry["seed_id"]] for entry in entries]),
            tuple(entry["seed_image"] for entry in entries),
        )

    def files(self, entry: Document) -> dict[str, bytes]:
        """Return the files of a deviation: its triggering input and its seed, by name.

        Raises:
            UserError: a file is gone or damaged.

        """
        files = {name: self._read(name) for name in (entry["image"], entry["seed_image"])}
        if hashlib.sha256(files[entry["image"]]).hexdigest() != entry["sha256"]:
            raise UserError(
                f"{self.directory.path / entry['image']} is not what was stored there: its sha256"
                " is another"
            )
        return files

    def _read(self, name: str) -> bytes:
        path = self.directory.path / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
