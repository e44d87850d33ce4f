"""A repair as one HTML file: `repair.html`. It runs no script, and asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.repair.page.front_figure import front_figure
from edgeflare.repair.page.judged_parts import (
    candidate_part,
    judged_part,
    residual_part,
    search_parts,
)
from edgeflare.repair.page.page_part import PagePart, PageTable
from edgeflare.repair.repair_cost import latency_change
from edgeflare.repair.repair_terminal import offer_line
from edgeflare.repair.shifts.shift_terminal import REPAIRERS
from edgeflare.report.arm_lines import details
from edgeflare.report.entry_names import class_name
from edgeflare.report.html.page_allowance import allowance
from edgeflare.report.html.page_template import packaged, page_environment
from edgeflare.report.html.pictures import Picture, picture
from edgeflare.run.run_directory import RunDirectory

_CHANGES = ("mended", "broken")
_MODELS = ("original", "before", "after")


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """What a model gives an input: the name of its label, probability and margin in percent."""

    model: str
    label: str
    percent: float
    margin: float


@dataclass(frozen=True, slots=True)
class ShownCard:
    """An input that is mended or broken, as the page shows it."""

    set: str
    change: str
    seed_id: int
    file: str
    picture: Picture
    answers: tuple[ShownAnswer, ...]


def render_repair(document: Mapping[str, Any], directory: RunDirectory) -> str:
    """Return a repair as an HTML document.

    Args:
        document: as `read_repair` returns it.
        directory: where it lies, and its inputs. One that is gone is missing in the page, too.

    Raises:
        UserError: the document names a file outside of the directory.

    """
    repaired, figure = document["repaired"], front_figure(document)
    return (
        page_environment("edgeflare.repair.page")
        .get_template("repair.html.j2")
        .render(
            repair=document,
            pair=document["pair"]["name"],
            offer=offer_line(document),
            latency=None if repaired is None else latency_change(repaired),
            front=None if figure is None else Markup(figure),  # noqa: S704 - its texts are escaped
            parts=list(_parts(document)),
            cards=_cards(document, directory),
            asked=details(_asked(document)),
            details=details,
            style=packaged("style.css"),
        )
    )


def _parts(document: Mapping[str, Any]) -> Iterator[PagePart]:
    yield candidate_part(document)
    if document["judged"] is not None:
        yield judged_part(document)
    if document["residual"] is not None:
        yield residual_part(document["residual"])
    yield from detail_parts(document)
    yield from search_parts(document)


def _asked(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was asked, without the folders of the machine that it ran on."""
    asked, test = document["request"], document["request"]["test"]
    test = None if test is None else PurePath(test).name
    return {**asked, "test": test, "seeds_to": document["seeds"]}


def _cards(document: Mapping[str, Any], directory: RunDirectory) -> dict[str, list[ShownCard]]:
    """Return the inputs that are mended, and those that are broken."""
    shown = document["shown"]
    most = allowance(len(shown))
    cards: dict[str, list[ShownCard]] = {change: [] for change in _CHANGES}
    for one in shown:
        answers = (
            ShownAnswer(
                model,
                class_name(document["classes"], one[model]["label"]),
                100 * one[model]["probability"],
                100 * one[model]["margin"],
            )
            for model in _MODELS
        )
        image = _picture(directory, one["image"], most)
        card = ShownCard(
            one["set"], one["change"], one["seed_id"], one["image"], image, tuple(answers)
        )
        cards[one["change"]].append(card)
    return cards


def _picture(directory: RunDirectory, name: str, most: int) -> Picture:
    try:
        image = ImageDomain.decode_file(directory.read(name))
    except OSError:
        image = None
    return Picture("input", None) if image is None else picture("input", image, most)


def detail_parts(document: Mapping[str, Any]) -> Iterator[PagePart]:
    """Yield a part for each section of the candidates' details.

    Args:
        document: of a repair.

    """
    for number, candidate in enumerate(document["candidates"]):
        for name, values in candidate["details"].items():
            if not isinstance(values, Mapping):
                values = {name: values}  # noqa: PLW2901 - one value is a section of one
            if name == "shifts":
                yield from _shift_parts(values, document["classes"], f"-{number}")
                values = {  # noqa: PLW2901 - the rest
                    key: one for key, one in values.items() if key not in ("repairers", "shifts")
                }
            yield PagePart(
                f"{name}-facts-{number}",
                f"{name.capitalize()}: {candidate['name']}",
                "",
                [
                    _table(key, rows, document["classes"])
                    for key, value in values.items()
                    if (rows := _rows(value))
                ],
                details({key: value for key, value in values.items() if not _rows(value)}),
            )


def _rows(value: Any) -> list[Mapping[str, Any]]:
    """Return the rows of what can be a table: objects in a list, or by name in an object."""
    if isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values()):
        return [{"": name, **one} for name, one in value.items()]
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        return value
    return []


def _table(title: str, rows: Sequence[Mapping[str, Any]], classes: Sequence[str]) -> PageTable:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return PageTable(
        _words(title),
        [_words(key) for key in keys],
        [[_cell(key, row.get(key), classes) for key in keys] for row in rows],
    )


def _cell(key: str, value: Any, classes: Sequence[str]) -> str:
    if key == "classes" and isinstance(value, list):
        named = [class_name(classes, one) if isinstance(one, int) else str(one) for one in value]
        return ", ".join(named)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, text in details(value)) or "–"
    return ", ".join(text for _, text in details({key: value})) or "–"


def _words(key: str) -> str:
    return key.replace("_", " ")


def _shift_parts(
    shifts: Mapping[str, Any], classes: Sequence[str], suffix: str = ""
) -> Iterator[PagePart]:
    """Yield what each repairer does, and the shifts.

    Args:
        shifts: the section `shifts` of a candidate's details.
        classes: names of the classes, perhaps none.
        suffix: ends the names of the parts.

    """
    yield PagePart(
        f"repairers{suffix}",
        "Repairers",
        "Shares of the held-out inputs, a fifth of the seeds at a time. Net: by how many points"
        " deviations fall over triggers, agreeing inputs and seeds, with its 95 % interval. As"
        " they come: deviations after over those before, on inputs that are sampled without the"
        " original.",
        [_repairer_table(shifts)],
    )
    yield PagePart(
        f"shifts{suffix}",
        "Shifts",
        "By how many steps the boundary between two classes moves in favour of the first;"
        f" a step is {shifts['shifts']['step']:g}.",
        [_shifts(shifts["shifts"], classes)],
    )


def _repairer_table(shifts: Mapping[str, Any]) -> PageTable:
    """Return a table of what each repairer does to held-out inputs."""
    header = (
        "repairer",
        "repaired",
        "induced on seeds",
        "induced on agreeing",
        "net",
        "as they come",
    )
    rows = []
    for name, one in shifts["repairers"].items():
        shares = (one[key] for key in ("repair_ratio", "inducing_ratio", "induced_agreeing"))
        value, low, high = (100 * one["net"][key] for key in ("value", "low", "high"))
        ratio = one["unled_ratio"]
        rows.append((
            REPAIRERS[name],
            *(f"{share:.1%}" for share in shares),
            f"{value:+.1f} ({low:+.1f} … {high:+.1f})",
            "–" if ratio is None else f"× {ratio:.2f}",
        ))  # fmt: skip
    return PageTable("On held-out folds", header, rows)


def _shifts(shifts: Mapping[str, Any], classes: Sequence[str]) -> PageTable:
    rows = [
        (*(class_name(classes, label) for label in one["classes"]), f"{one['steps']:+}")
        for one in shifts["pairs"]
    ]
    return PageTable("Shifts", ("class", "against", "steps"), rows)
