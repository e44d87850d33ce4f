"""A check as a section of a model card, the README.md of a model on Hugging Face and elsewhere.

The section stands between two comments, and is replaced by the next check; the rest of the card,
its metadata among it, stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edgeflare.errors import UserError, kind_at_named_path
from edgeflare.pages.markdown import markdown_section
from edgeflare.pages.page import Bullets, Section, Sentences
from edgeflare.record.atomic_file import write_atomically
from edgeflare.regular_file import read_regular
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.check_page import check_page, gates_table

_BEGIN: Final = "<!-- edgeflare check: what stands here is replaced by the next one -->"
_END: Final = "<!-- end of edgeflare check -->"
_SECTION: Final = re.compile(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_MOST_BYTES: Final = 2**22


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A model card, which may be absent or empty.

    Attributes:
        path: file of the card, Markdown.
        text: what stands in it.

    """

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> ModelCard:
        """Read a card, so that what is wrong with it is said before a check.

        Raises:
            UserError: it cannot be read, is no text, or has one comment of a section alone.

        """
        if path.suffix.lower() != ".md":
            raise UserError(f"--card {path}: expected a Markdown file, such as README.md")
        try:
            text = read_regular(path, _MOST_BYTES).decode()
        except FileNotFoundError as error:
            if not path.parent.is_dir():
                raise UserError(f"--card {path}: {error.strerror}") from None
            text = ""
        except UnicodeDecodeError:
            raise UserError(f"--card {path}: it is no text in UTF-8") from None
        except OSError as error:
            raise kind_at_named_path(error)(f"--card {path}: {error.strerror}") from None
        comments = text.count(_BEGIN) + text.count(_END)
        if comments and (comments != len((_BEGIN, _END)) or not _SECTION.search(text)):
            raise UserError(
                f"--card {path}: the two comments around a section are not there once, one behind"
                f" the other: remove them, or mend them: {_BEGIN} and {_END}"
            )
        return cls(path, text)

    def keep(self, document: CheckDocument) -> None:
        """Write the section of a check into the card, in the place of an earlier one.

        The card is read again, since a check takes minutes in which it may be edited. Lines end as
        its own do, and what a symbolic link names is written, as in a cache of Hugging Face.

        Raises:
            UserError: it is no card any more, or must not be written.
            InfrastructureError: it cannot be written.

        """
        text = ModelCard.read(self.path).text
        end = "\r\n" if "\r\n" in text else "\n"
        section = f"{_BEGIN}\n{card_section(document)}{_END}".replace("\n", end)
        if _BEGIN in text:
            text = _SECTION.sub(lambda _: section, text)
        else:
            text = f"{text.rstrip()}{end}{end}{section}{end}".lstrip()
        try:
            write_atomically(self.path.resolve(), text.encode())
        except OSError as error:
            raise kind_at_named_path(error)(f"--card {self.path}: {error.strerror}") from None


def card_section(document: CheckDocument) -> str:
    """Return a check as a section of a model card, in Markdown."""
    page = check_page(document)
    on = [
        f"{device.kernels.device.name}: {device.kernels.device.provenance.runtime}"
        f" {device.kernels.device.provenance.runtime_version}"
        for device in document.figures.devices
    ]
    return markdown_section(
        Section(
            id="card",
            title="Compressed model against its original",
            blocks=[
                Sentences([f"{page.lead}."]),
                gates_table(document),
                Bullets(on),
                Sentences([f"Checked by EdgeFlare {document.edgeflare}."]),
            ],
        )
    )
