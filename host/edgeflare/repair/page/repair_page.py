"""A repair as one HTML file: `repair.html`. It runs no script, and asks for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from markupsafe import Markup
from msgspec import structs

from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import details
from edgeflare.pages.html_template import packaged, page_environment
from edgeflare.pages.page_allowance import allowance
from edgeflare.repair.judging.shown_inputs import ChangeKind, ShownAnswer
from edgeflare.repair.page.front_figure import front_figure
from edgeflare.repair.page.page_parts import page_parts
from edgeflare.repair.repair_document import RepairDocument
from edgeflare.repair.repair_terminal import offer_line
from edgeflare.report.html.pictures import Picture, picture
from edgeflare.run.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class CardRow:
    """What a model gives an input: the name of its label, probability and margin in percent."""

    model: str
    label: str
    percent: float
    margin: float


@dataclass(frozen=True, slots=True)
class ShownCard:
    """An input that is mended or broken, as the page shows it."""

    set: str
    seed_id: int
    file: str
    picture: Picture
    answers: tuple[CardRow, ...]


def render_repair(document: RepairDocument, directory: RunDirectory) -> str:
    """Return a repair as an HTML document.

    Args:
        document: as `read_repair` returns it.
        directory: where it lies, and its inputs. One that is gone is missing in the page, too.

    Raises:
        UserError: the document names a file outside of the directory.

    """
    figure, test = front_figure(document), document.request.test
    # The page does not tell the folders of the machine that the repair ran on.
    asked = structs.replace(document.request, test=None if test is None else PurePath(test).name)
    return (
        page_environment("edgeflare.repair.page", "edgeflare.report.html")
        .get_template("repair.html.j2")
        .render(
            repair=document,
            offer=offer_line(document),
            front=None if figure is None else Markup(figure),  # noqa: S704 - its texts are escaped
            parts=list(page_parts(document)),
            cards=_cards(document, directory),
            asked=details({**structs.asdict(asked), "seeds_to": structs.asdict(document.seeds)}),
            details=details,
            style=packaged("style.css"),
        )
    )


def _cards(document: RepairDocument, directory: RunDirectory) -> dict[ChangeKind, list[ShownCard]]:
    """Return the inputs that are mended, and those that are broken."""
    most = allowance(len(document.shown))
    cards: dict[ChangeKind, list[ShownCard]] = {"mended": [], "broken": []}

    def row(model: str, answer: ShownAnswer) -> CardRow:
        label = class_name(document.classes, answer.label)
        return CardRow(model, label, 100 * answer.probability, 100 * answer.margin)

    for one in document.shown:
        answers = (
            row("original", one.original),
            row("before", one.before),
            row("after", one.after),
        )
        image = _picture(directory, one.image, most)
        cards[one.change].append(ShownCard(one.set, one.seed_id, one.image, image, answers))
    return cards


def _picture(directory: RunDirectory, name: str, most: int) -> Picture:
    try:
        image = ImageDomain.decode_file(directory.read(name))
    except OSError:
        image = None
    return Picture("input", None) if image is None else picture("input", image, most)
