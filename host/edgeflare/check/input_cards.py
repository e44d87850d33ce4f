"""Inputs that a device decides otherwise, as a browser shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeflare.check.check_document import CheckDocument
from edgeflare.check.figures.decisions import SHOWN, ChangedInput
from edgeflare.core.domain import Domain
from edgeflare.core.query import Arm
from edgeflare.core.views import InputView
from edgeflare.domains.domain_registry import find_domain
from edgeflare.pages.html_page import page_environment
from edgeflare.pages.page_allowance import PageAllowance, allowance
from edgeflare.record.path_inside import path_inside
from edgeflare.regular_file import read_regular
from edgeflare.report.html.answered_shots import (
    Blocks,
    answer_blocks,
    answered_shots,
    without_shown,
)
from edgeflare.report.html.input_views import StoredView
from edgeflare.report.html.shots import PICTURES, ShotGroup, shot_groups
from edgeflare.run.run_directory import MOST_BYTES


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
        (device.decisions.device, one)
        for device in document.figures.devices
        for one in device.decisions.changed_inputs
        if one.file
    ][:SHOWN]
    if interface is None or not changed:
        return ""
    domain = find_domain(interface.domain, interface.domain_settings or {}, "the check's domain")
    pictures = sum(view.opened().pictures for _, one in changed for view in one.answers)
    most = PageAllowance(allowance(PICTURES * len(changed) + pictures))
    shown = [
        _looked_at(device, one, StoredView("input", one.file, _view(domain, folder, one)), most)
        for device, one in changed
    ]
    environment = page_environment("edgeflare.check", "edgeflare.report.html")
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
    device: str, one: ChangedInput, stored: StoredView, most: PageAllowance
) -> _LookedAt:
    facts = [(str(arm), words) for arm, words in one.said.items()]
    facts += [("right", one.right)] if one.right else []
    facts += [("file", one.name)] if one.name != str(one.seed_id) else []
    shots = shot_groups((stored,), most)
    reference = Arm.ORIGINAL if Arm.ORIGINAL in one.said else Arm.TWIN
    views = {stored.what: [view.opened() for view in one.answers]}
    blocks = answer_blocks(views, (str(reference), str(Arm.DEVICE)), shots, most.picture)
    shots = answered_shots(shots, blocks)
    return _LookedAt(
        id=f"shown-{device}-{one.seed_id}",
        entry=one,
        title=one.change,
        facts=tuple(facts),
        shots=shots,
        answers=without_shown(shots, blocks[stored.what]),
    )


def _view(domain: Domain, folder: Path, one: ChangedInput) -> InputView | None:
    try:
        return domain.view_file(read_regular(path_inside(folder, one.file), MOST_BYTES))
    except OSError:
        return None
