"""A run as one HTML file: `report.html`. It needs no network, and asks for nothing but itself."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.pages.facts import details
from edgeflare.pages.html_template import packaged, page_environment
from edgeflare.pages.page_allowance import PageAllowance, allowance
from edgeflare.report.answer_words import answer_words
from edgeflare.report.arm_lines import arm_lines
from edgeflare.report.coverage_table import coverage_table
from edgeflare.report.entry_names import SORTS, last_parts, worst_first
from edgeflare.report.figure_lines import kind_lines, nearness_lines, unmutated_lines
from edgeflare.report.html.card import EntryCard, answer_pictures, make_card
from edgeflare.report.html.charts import charts_of
from edgeflare.report.html.explanation_view import ExplanationView, grouped_verdicts
from edgeflare.report.html.inspection_view import InspectionView
from edgeflare.report.html.sounds import SoundFigure
from edgeflare.report.input_words import input_words
from edgeflare.run.harm import NOBODY, count_harms, harm_of_entry
from edgeflare.run.nearness import counts
from edgeflare.run.replay_outcome import deviating_now, tried
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding, RunDocument, to_json

STOPPED = {
    **{by: f"The run was stopped by {word} before its end." for by, word in INTERRUPTED_BY.items()},
    "total-time": "The run was stopped by --total-time before its end.",
    "infrastructure": "The run was stopped by a failure before its end.",
    "error": "The run was ended by an error before its end.",
    "killed": "The run was killed before its end.",
    "screening": "Only the seeds were evaluated, and nothing was searched.",
    "merge": "The run was merged from parts that leave something to do.",
}


def render_page(
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
        inspection: which hidden units have to do with deviations, if that was looked for.

    """
    script = packaged("gallery.js", "edgeflare.report.html")
    replay = _replay_of(document)
    entries = [entry for some in document.lists.values() for entry in some]
    pictures = sum((4 if entry.refined else 3) + answer_pictures(entry) for entry in entries)
    most = PageAllowance(allowance(pictures))
    findings_first = sorted(document.lists, key=lambda key: key != "findings")
    lists = {
        key: _cards(document, worst_first(document.lists[key]), directory, most, explanations)
        for key in findings_first
    }
    return (
        page_environment("edgeflare.report.html")
        .get_template("run.html.j2")
        .render(
            run=document,
            totals=document.totals,
            all_totals=details(to_json(document.totals)),
            replay=replay,
            ran=arm_lines(document),
            details=details,
            stopped=STOPPED.get(document.stopped_by or ""),
            charts=charts_of(document),
            covered=coverage_table(document),
            inspection=inspection,
            unmutated=unmutated_lines(document),
            nearness=[] if replay else nearness_lines(document),
            kinds=kind_lines(document),
            figures={} if document.unmutated is None else to_json(document.unmutated),
            lists=lists,
            inputs=input_words(document.pair),
            answers=answer_words(document.pair),
            verdicts=grouped_verdicts(
                explanations[entry.seed_id]
                for entry in document.findings
                if entry.seed_id in explanations
            ),
            sounds=_sounds(lists),
            choices=_choices(lists["findings"]),
            style=packaged("style.css"),
            script=script,
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


def _cards(
    document: RunDocument,
    entries: Sequence[Finding],
    directory: RunDirectory,
    most: PageAllowance,
    explanations: Mapping[int, ExplanationView],
) -> list[EntryCard]:
    return [
        make_card(document, entry, directory, most, explanations.get(entry.seed_id))
        for entry in entries
    ]


def _sounds(lists: Mapping[str, Sequence[EntryCard]]) -> tuple[int, int]:
    """Return how many entries can be listened to in the page, and how many have sounds at all."""
    players = [
        any(shot.player for shot in sounds)
        for cards in lists.values()
        for card in cards
        if (sounds := [one for group in card.shots for one in group.shots
                       if isinstance(one, SoundFigure) and one.wave])
    ]  # fmt: skip
    return sum(players), len(players)


def _choices(cards: Sequence[EntryCard]) -> dict[str, object]:
    """Return what the findings can be filtered by."""
    sorts = Counter(card.sort for card in cards)
    labels = Counter(label for card in cards for label in card.labels)
    names = {label: name for card in cards for label, name in card.labels.items()}
    devices = Counter(card.entry.device for card in cards)
    harms = count_harms(harm_of_entry(card.entry) for card in cards)
    strengths = [card.entry.strength for card in cards if card.entry.strength is not None]
    return {
        "sorts": [(name, sorts[name]) for name in SORTS if sorts[name]],
        "labels": [(label, names[label], labels[label]) for label in sorted(labels)],
        "kinds": _kinds(cards),
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


def _kinds(cards: Sequence[EntryCard]) -> list[tuple[str, str, int]]:
    """Return the kinds of deviations, where there is more than one."""
    kinds = Counter(card.kind for card in cards if card.kind)
    named = [(kind, kind.replace("-", " "), count) for kind, count in kinds.most_common()]
    return named if len(named) > 1 else []


@dataclass(frozen=True, slots=True)
class _ReplayView:
    """A replay, as its page shows it.

    Attributes:
        of: the run that it replays, and the devices of that.
        model: the compressed model now, and what it was where it is another.
        tried: how many stored inputs were tried again.
        deviating: how many of them deviate each time.
        mended: how many do not deviate at all, nor does their seed.
        worse: seeds of inputs that deviate themselves, and did not when the run was made.
        but: those of them whose stored input is mended.
        changed: the kind that an input is of now, where it was of another, by its seed.
        baseline: the run that it is held against, or None.
        new: seeds of what deviates and did not there.
        seeds_are_new: whether `new` is partly of seeds.

    """

    of: str
    model: str
    tried: int
    deviating: int
    mended: int
    worse: frozenset[int]
    but: frozenset[int]
    changed: dict[int, str]
    baseline: str | None
    new: frozenset[int]
    seeds_are_new: bool


def _replay_of(document: RunDocument) -> _ReplayView | None:
    """Return what is shown of a replay; None of a search."""
    outcome = document.replay
    if outcome is None:
        return None
    worse = frozenset(outcome.deviating_seeds)
    mended = frozenset(entry.seed_id for entry in outcome.mended)
    return _ReplayView(
        of=f"{_name(outcome.of.run)} (on {', '.join(outcome.of.devices)})",
        model=_model(document.pair.compressed, outcome.of.compressed),
        tried=tried(document),
        deviating=deviating_now(document),
        mended=len(mended - worse),
        worse=worse,
        but=mended & worse,
        changed={one.seed_id: f"{one.before} → {one.now}" for one in outcome.changed_kind},
        baseline=None if outcome.baseline is None else _name(outcome.baseline),
        new=frozenset(outcome.new),
        seeds_are_new=not worse.isdisjoint(outcome.new),
    )


def _model(now: str, then: str) -> str:
    """Name the compressed model, and what it was where it is another."""
    if now == then:
        return _name(now)
    shown = last_parts if _name(now) == _name(then) else _name
    return f"{shown(now)} (then {shown(then)})"


def _name(path: str) -> str:
    """Return the last part of a path: a report is passed on."""
    return last_parts(path).rpartition("/")[2]
