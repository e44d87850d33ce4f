"""The folder of a check."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from edgeflare.check.check_document import CheckDocument, CheckRequest, check_bytes, load_check
from edgeflare.check.figures.check_figures import CheckFigures
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.diagnose.layers.layers_document import LAYERS, LayersDocument, layers_bytes
from edgeflare.errors import UserError
from edgeflare.models.pair_file import FILE
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import FolderKind
from edgeflare.record.folder_contents import FOLDER, list_as
from edgeflare.record.request import require_same_request
from edgeflare.run.run_directory import CHECK_DOCUMENT

PAGE: Final = "check.html"

CHECKED: Final = FolderKind(
    "check", files=(CHECK_DOCUMENT, PAGE, FILE, "reference.tflite"), folders=("layers", "inputs")
)


@dataclass(frozen=True, slots=True)
class CheckFolder:
    """A folder that a check alone writes.

    Attributes:
        path: path of the folder.
        figures: what is known already, of a check that goes on.
        seconds: seconds that earlier parts of the check took.

    """

    path: Path
    figures: CheckFigures
    seconds: float

    @classmethod
    def begin(
        cls, path: Path, request: CheckRequest, stack: ExitStack, *, overwrite: bool, resume: bool
    ) -> CheckFolder:
        """Claim a folder until `stack` closes it, and empty it unless the check there goes on.

        Raises:
            UserError: it must not be written over, or the check there was begun with other options.

        """
        if not resume:
            stack.enter_context(CHECKED.claim(path, overwrite=overwrite)).empty()
            return cls(path, CheckFigures(), 0.0)

        def same() -> None:
            if not (path / CHECK_DOCUMENT).is_file():
                raise UserError(f"{path} holds no check to go on with: leave --resume away")
            begun = load_check(path / CHECK_DOCUMENT).asked
            if begun.fingerprint != request.fingerprint:
                raise UserError(
                    f"{path} was begun with another pair, or other inputs or models in it: check"
                    " it anew with --overwrite, or name another folder with --out"
                )
            if request.mend:  # a check that was begun without may be gone on with for that
                begun = replace(begun, mend=True)
            own = replace(begun, budget=request.budget)  # each time has its own
            require_same_request(own, request, path)

        stack.enter_context(CHECKED.take(path, same))
        before = load_check(path / CHECK_DOCUMENT)
        return cls(path, before.figures, before.seconds)

    def keep(self, document: CheckDocument) -> None:
        """Keep what there is to say so far."""
        write_atomically(self.path / CHECK_DOCUMENT, check_bytes(document))

    def keep_layers(self, table: LayersDocument) -> None:
        """Keep the layer table."""
        (self.path / "layers").mkdir(exist_ok=True)
        write_atomically(self.path / "layers" / LAYERS, layers_bytes(table))

    def keep_input(self, seed_id: int, input_: Input, domain: Domain) -> str:
        """Keep an input that is looked into, and return its path in the folder."""
        name = f"inputs/{seed_id:06d}{domain.suffix}"
        (self.path / "inputs").mkdir(exist_ok=True)
        write_atomically(self.path / name, domain.encode_file(input_))
        return name

    def keep_folder(self, name: str) -> None:
        """Note a folder within this one that a search makes."""
        list_as(self.path, name, FOLDER)

    def keep_page(self, document: CheckDocument) -> None:
        """Write the page of the document."""
        from edgeflare.check.check_html import check_html  # noqa: PLC0415 - takes time

        write_atomically(self.path / PAGE, check_html(document, self.path).encode())
