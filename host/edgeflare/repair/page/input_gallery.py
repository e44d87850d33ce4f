"""The inputs that a repair mends or breaks, with the labels of three models, as HTML."""

from __future__ import annotations

from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.html_page import page_environment
from edgeflare.pages.page_allowance import allowance
from edgeflare.repair.judging.repair_examples import ChangeKind
from edgeflare.repair.repair_document import RepairDocument
from edgeflare.report.html.pictures import Picture, picture
from edgeflare.run.run_directory import RunDirectory


def input_gallery(document: RepairDocument, directory: RunDirectory, change: ChangeKind) -> str:
    """Return a card for each input of a kind of change.

    Args:
        document: the repair.
        directory: where its inputs are.
        change: the kind.

    Raises:
        UserError: the document names a file outside of the directory.

    """
    most = allowance(len(document.shown))
    shown = [
        (shown_input, _picture(directory, shown_input.file, most))
        for shown_input in document.shown
        if shown_input.change == change
    ]
    template = page_environment("edgeflare.repair.page").get_template("gallery.html.j2")
    return template.render(shown=shown, classes=document.classes, class_name=class_name)


def _picture(directory: RunDirectory, name: str, most: int) -> Picture:
    try:
        image = ImageDomain.decode_file(directory.read(name))
    except OSError:
        image = None
    return Picture("input", None) if image is None else picture("input", image, most)
