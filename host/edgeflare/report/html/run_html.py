"""A run as one HTML file: `report.html`. Its one script chooses, sorts and enlarges findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from edgeflare.pages.chart import charts_html
from edgeflare.pages.facts import in_words
from edgeflare.pages.html_page import html_page, packaged, page_environment
from edgeflare.pages.page_allowance import PageAllowance, allowance
from edgeflare.report.entry_words import SORTS, answer_words, input_words, worst_first
from edgeflare.report.html.card import EntryCard, answer_pictures, make_card
from edgeflare.report.html.charts import charts_of
from edgeflare.report.html.explanation_view import ExplanationView, grouped_verdicts
from edgeflare.report.html.inspection_view import InspectionView
from edgeflare.report.html.sounds import SoundFigure
from edgeflare.report.run_page import LISTS, REPLAY_LISTS, Draw, run_page
from edgeflare.run.harm import NOBODY, count_harms, harm_of_entry
from edgeflare.run.nearness import counts
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDocument

_TEMPLATES = "edgeflare.report.html"


def run_html(
    document: RunDocument,
    directory: RunDirectory,
    explanations: Mapping[int, ExplanationView],
    inspection: InspectionView | None = None,
) -> str:
    """Return a run as an HTML document.

    Args:
        document: the run.
        directory: where its inputs are. One that is gone is missing in the page, too.
        explanations: why findings deviate, by seed id, as far as that was looked for.
        inspection: hidden units that have to do with deviations, if that was looked for.

    """
    cards = _cards(document, directory, explanations)
    lists = LISTS if document.replay is None else REPLAY_LISTS
    drawn: dict[str, Draw] = {
        place: partial(_gallery, document, key, cards, explanations)
        for key, (place, _, _) in lists.items()
    }
    drawn["charts"] = lambda: charts_html(charts_of(document))
    if inspection is not None:
        drawn["units"] = lambda: _rendered("inspection.html.j2", inspection=inspection)
    script = packaged("gallery.js", _TEMPLATES)
    return html_page(run_page(document, drawn), script)


def _rendered(template: str, **known: Any) -> str:
    return page_environment(_TEMPLATES).get_template(template).render(**known)


def _cards(
    document: RunDocument, directory: RunDirectory, explanations: Mapping[int, ExplanationView]
) -> dict[str, list[EntryCard]]:
    """Return the cards of each list; those of findings are made first, and have the players."""
    entries = [entry for some in document.lists.values() for entry in some]
    pictures = sum((4 if entry.refined else 3) + answer_pictures(entry) for entry in entries)
    most = PageAllowance(allowance(pictures))
    return {
        key: [
            make_card(document, entry, directory, most, explanations.get(entry.seed_id))
            for entry in worst_first(document.lists[key])
        ]
        for key in sorted(document.lists, key=lambda key: key != "findings")
    }


def _gallery(
    document: RunDocument,
    key: str,
    cards: Mapping[str, Sequence[EntryCard]],
    explanations: Mapping[int, ExplanationView],
) -> str:
    """Return the cards of a list; those of the findings can be chosen from and sorted."""
    findings = key == "findings"
    replay = document.replay
    known = {entry.seed_id: explanations.get(entry.seed_id) for entry in document.findings}
    return _rendered(
        "gallery.html.j2",
        cards=cards[key],
        section={"deviating_seeds": "deviating", "findings": "finding"}.get(key, key),
        replay=replay,
        changed={
            changed_kind.seed_id: f"{changed_kind.before} → {changed_kind.now}"
            for changed_kind in (() if replay is None else replay.changed_kind)
        },
        inputs=input_words(document.pair),
        answers=answer_words(document.pair),
        choices=_choices(cards[key]) if findings else None,
        sounds=_sounds(cards) if findings else (0, 0),
        verdicts=grouped_verdicts(filter(None, known.values())) if findings else [],
    )


def _sounds(lists: Mapping[str, Sequence[EntryCard]]) -> tuple[int, int]:
    """Return how many entries can be listened to in the page, and how many have sounds at all."""
    players = [
        any(shot.player for shot in sounds)
        for cards in lists.values()
        for card in cards
        if (sounds := [shot for group in card.shots for shot in group.shots
                       if isinstance(shot, SoundFigure) and shot.wave])
    ]  # fmt: skip
    return sum(players), len(players)


def _choices(cards: Sequence[EntryCard]) -> dict[str, object]:
    """Return what the findings can be filtered by."""
    sorts = Counter(card.sort for card in cards)
    kinds = Counter(card.kind for card in cards if card.kind).most_common()
    labels = Counter(label for card in cards for label in card.labels)
    names = {label: name for card in cards for label, name in card.labels.items()}
    devices = Counter(card.entry.device for card in cards)
    harms = count_harms(harm_of_entry(card.entry) for card in cards)
    strengths = [card.entry.strength for card in cards if card.entry.strength is not None]
    return {
        "sorts": [(name, sorts[name]) for name in SORTS if sorts[name]],
        "labels": [(label, names[label], labels[label]) for label in sorted(labels)],
        "kinds": [] if len(kinds) < 2 else [(kind, in_words(kind), count) for kind, count in kinds],
        "harms": [] if harms.keys() <= NOBODY else list(harms.items()),
        "devices": sorted(devices.items()),
        "strongest": max(strengths, default=0.0),
        **_orders(cards),
    }


def _orders(cards: Sequence[EntryCard]) -> dict[str, str | None]:
    """Return what the page's own order, and that by harm, go by (`worst_first`); None for neither.

    A criterion in which all findings are alike is not named.
    """
    failures = "failures" if len({card.rank == 0 for card in cards}) > 1 else ""
    counting = "what counts" if len({counts(card.entry) for card in cards}) > 1 else ""
    harm = "most harmful" if any(card.entry.harm for card in cards) else ""
    matters = [failures, counting, harm, "strongest"]
    return {
        "by_what_matters": ", then ".join(filter(None, matters)) if failures or counting else None,
        "by_harm": ", then ".join(filter(None, (failures, harm))) if harm else None,
    }
