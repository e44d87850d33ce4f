"""A check as an HTML page, with what only a browser shows of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final
from urllib.parse import quote as quoted_address

from edgeflare.core.domain import Domain
from edgeflare.core.query import Arm
from edgeflare.core.views import InputView
from edgeflare.diagnose.layers.layers_document import LAYERS, load_layers
from edgeflare.domains.domain_registry import find_domain
from edgeflare.pages.html_page import html_page, page_environment
from edgeflare.pages.page_allowance import PageAllowance, allowance
from edgeflare.record.path_inside import path_inside
from edgeflare.regular_file import read_regular
from edgeflare.release.check_document import CheckDocument
from edgeflare.release.check_page import check_page
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.decisions import SHOWN, ChangedInput
from edgeflare.release.sections import STATES, CheckSection, SectionName
from edgeflare.report.html.answered_shots import (
    PICTURES,
    Blocks,
    ShotGroup,
    answer_blocks,
    answered_shots,
    shot_groups,
    without_shown,
)
from edgeflare.report.html.input_views import StoredView
from edgeflare.run.run_directory import MOST_BYTES

if TYPE_CHECKING:
    from edgeflare.pages.chart import Chart


def check_html(document: CheckDocument, folder: Path) -> str:
    """Return a check as an HTML page; without the extra `report` it has no charts.

    Args:
        document: document of the check.
        folder: folder of the check, as the user knows it, with its inputs and runs.

    Raises:
        UserError: the folder names a file outside of it.

    """

    def parts() -> dict[str, str]:
        known = (section for section in page.sections if section.id != "sections")
        return {section.id: section.title for section in known if any(section.blocks)}

    drawn = {
        "changed": lambda: looked_at_html(document, folder),
        "sections": lambda: sections_html(document, folder, parts()),
        "field": lambda: _charts(lambda: _of_conditions(document)),
        "layers": lambda: _charts(lambda: _of_layers(folder)),
    }
    page = check_page(document, drawn)
    return html_page(page)


def _charts(drawn: Callable[[], Iterator[Chart]]) -> str:
    """Return charts as HTML; nothing where matplotlib is not installed."""
    try:
        from edgeflare.pages.chart import charts_html  # noqa: PLC0415 - needs an extra
    except ImportError:
        return ""
    return charts_html(tuple(drawn()))


def _of_conditions(document: CheckDocument) -> Iterator[Chart]:
    from edgeflare.release.field_chart import field_chart  # noqa: PLC0415 - needs an extra

    known = document.figures.field
    chart = None if known is None else field_chart(known, document.plan.gates.get("field-loss"))
    if chart is not None:
        yield chart


def _of_layers(folder: Path) -> Iterator[Chart]:
    from edgeflare.diagnose.layers.layer_charts import layer_charts  # noqa: PLC0415 - as above

    table = folder / "layers" / LAYERS
    if table.is_file():
        yield from layer_charts(load_layers(table))


def looked_at_html(document: CheckDocument, folder: Path) -> str:
    """Return the first changed inputs as HTML; nothing where none was stored.

    Args:
        document: document of the check.
        folder: folder of the check's inputs. One that is gone is shown as gone.

    Raises:
        UserError: the name of a file leads out of the folder, or there is no such domain.

    """
    interface = document.interface
    changed = [
        (device.decisions.device, changed_input)
        for device in document.figures.devices
        for changed_input in device.decisions.changed_inputs
        if changed_input.file
    ][:SHOWN]
    if interface is None or not changed:
        return ""
    domain = find_domain(interface.domain, interface.domain_settings or {}, "the check's domain")
    pictures = sum(
        view.opened().pictures for _, changed_input in changed for view in changed_input.answers
    )
    most = PageAllowance(allowance(PICTURES * len(changed) + pictures))
    shown = [
        _looked_at(
            device,
            changed_input,
            StoredView("input", changed_input.file, _view(domain, folder, changed_input)),
            most,
        )
        for device, changed_input in changed
    ]
    environment = page_environment("edgeflare.release", "edgeflare.report.html")
    return environment.get_template("looked_at.html.j2").render(inputs=shown)


@dataclass(frozen=True, slots=True)
class _LookedAt:
    """What is shown of an input.

    Attributes:
        id: id of the input's heading in the page.
        entry: the input, whose `seed_id` stands in the texts of pictures.
        title: how its decision changed.
        facts: what each arm says, and what is right.
        shots: the input itself, with what is drawn upon it.
        answers: the answers that are shown below it.

    """

    id: str
    entry: ChangedInput
    title: str
    facts: tuple[tuple[str, str], ...]
    shots: tuple[ShotGroup, ...]
    answers: Blocks


def _looked_at(
    device: str, changed: ChangedInput, stored: StoredView, most: PageAllowance
) -> _LookedAt:
    facts = [(str(arm), words) for arm, words in changed.said.items()]
    facts += [("right", changed.right)] if changed.right else []
    facts += [("file", changed.name)] if changed.name != str(changed.seed_id) else []
    shots = shot_groups((stored,), most)
    reference = Arm.ORIGINAL if Arm.ORIGINAL in changed.said else Arm.TWIN
    views = {stored.what: [view.opened() for view in changed.answers]}
    blocks = answer_blocks(views, (str(reference), str(Arm.DEVICE)), shots, most.picture)
    shots = answered_shots(shots, blocks)
    return _LookedAt(
        id=f"shown-{device}-{changed.seed_id}",
        entry=changed,
        title=changed.change,
        facts=tuple(facts),
        shots=shots,
        answers=without_shown(shots, blocks[stored.what]),
    )


def _view(domain: Domain, folder: Path, changed: ChangedInput) -> InputView | None:
    try:
        return domain.view_file(read_regular(path_inside(folder, changed.file), MOST_BYTES))
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class SectionEvidence:
    """Where can be looked at what a section says.

    Attributes:
        name: what is there.
        address: the link to a part of the page, a file or a folder, relative to the page.
        command: makes a page of a folder that has none yet; empty where the address is one.

    """

    name: str
    address: str
    command: str = ""


def sections_html(document: CheckDocument, folder: Path, parts: Mapping[str, str]) -> str:
    """Return the sections of a check as HTML, each with its evidence.

    Args:
        document: document of the check.
        folder: folder of the check, as the user knows it.
        parts: titles of the parts that the page has, by their ids.

    Raises:
        UserError: the document names a folder outside of that of the check.

    """
    rows = [
        (
            shown_section,
            STATES[shown_section.state],
            list(section_evidence(document.figures, shown_section, folder, parts)),
        )
        for shown_section in document.shown_sections
    ]
    return page_environment("edgeflare.release").get_template("sections.html.j2").render(rows=rows)


def section_evidence(
    figures: CheckFigures, section: CheckSection, folder: Path, parts: Mapping[str, str]
) -> Iterator[SectionEvidence]:
    """Yield the evidence of a section: parts of the page, then what lies in the folder.

    Args:
        figures: what was measured.
        section: the section.
        folder: folder of the check, as the user knows it.
        parts: titles of the parts that the page has, by their ids.

    Raises:
        UserError: the document names a folder outside of that of the check.

    """
    for part in _PARTS[section.name]:
        if part in parts:
            yield SectionEvidence(parts[part], f"#{part}")
    for name, run, page in _runs(figures, section.name):
        path = path_inside(folder, run)
        if path_inside(folder, f"{run}/{page}").is_file():
            yield SectionEvidence(name, quoted_address(f"{run}/{page}"))
        elif path.is_dir():
            command = f"edgeflare report {quote(str(path))} --html"
            yield SectionEvidence(name, quoted_address(f"{run}/"), command)


_PARTS: Final[Mapping[SectionName, Collection[str]]] = {
    "data": ("assumed",),
    "decisions": ("changed", "arms", "gates"),
    "numbers": ("numbers", "drawn"),
    "file": ("faults",),
    "layers": ("layers", "faults"),
    "device": ("arms", "operators", "drawn"),
    "field": ("field",),
    "near": ("near",),
    "cost": ("cost",),
    "mend": ("mend",),
}
"""Ids of the parts of the page that a section is about."""


def _runs(figures: CheckFigures, section: SectionName) -> Iterator[tuple[str, str, str]]:
    """Yield the runs that a section is made from: name, folder in that of the check, and page."""
    if section == "layers":
        yield "layer table", "layers", "layers.html"
    if section == "device":
        for operator in figures.operators:
            yield f"operators on {operator.device}", operator.run, "conform.html"
    if section == "near" and figures.near is not None:
        yield "search of this file", figures.near.model.run, "report.html"
        yield "search of good int8 of its original", figures.near.reference.run, "report.html"
    if section == "mend" and figures.mend is not None:
        yield "repair", figures.mend.folder, "repair.html"
