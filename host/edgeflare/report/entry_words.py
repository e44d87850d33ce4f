"""What every report says of an entry of a run: its names, its inputs, and what arms answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import PurePath

from edgeflare.core.answer import DEVIATION, FAILURES
from edgeflare.models.run_pair import RunPair
from edgeflare.pages.answers.answer_form import ARMS, AnswerForm, AnswerWords, class_name
from edgeflare.pages.answers.answer_forms import words_of
from edgeflare.pages.answers.classes import ClassesView
from edgeflare.pages.facts import in_words
from edgeflare.run.harm import rank
from edgeflare.run.nearness import counts, nearness_db
from edgeflare.run.run_document import Finding, RunDocument

SORTS = ("compression", "kernel", "mixed", "crash", "hang", "invalid-output")
"""What `sort` may return, in the order in which reports list it."""


def sort(entry: Finding) -> str:
    """Return the cause of a deviation, or the kind of anything worse."""
    return entry.kind if entry.kind in FAILURES else entry.cause or DEVIATION


def cause_of(entry: Finding) -> str:
    """Return what `sort` returns, and whether the deviation hangs on a tie: "kernel, tie"."""
    return f"{sort(entry)}, tie" if entry.by_tie else sort(entry)


def named_kind(entry: Finding) -> str:
    """Return the kind of a deviation in words, "object vanished"; empty where the task has none."""
    if entry.kind == DEVIATION or entry.kind in FAILURES:
        return ""
    return in_words(entry.kind)


def worst_first(entries: Iterable[Finding]) -> list[Finding]:
    """Return entries as they matter: failures, what counts, then by harm, then by strength."""
    return sorted(
        entries,
        key=lambda entry: (
            entry.kind not in FAILURES,
            not counts(entry),
            rank(entry),
            -(entry.strength or 0.0),
        ),
    )


def show_nearness(entry: Finding) -> str:
    """Return how near an entry is to its seed in dB; a seed that deviates itself is at ∞."""
    value = nearness_db(entry)
    return "–" if value is None else "∞" if value == inf else f"{round(value)}"


def with_article(measure: str) -> str:
    """Return the name of a measure with its article: "a PSNR", "an SNR"."""
    return f"{'an' if measure[:1] in 'AEFHILMNORSX' else 'a'} {measure}"


def seed_of(entry: Finding) -> str:
    """Return a seed's id, and its file's name where it has one of its own."""
    named = "" if entry.seed_name.isdecimal() else f" {entry.seed_name}"
    return f"{entry.seed_id}{named}"


def last_part(path: str) -> str:
    """Return the last name of a path: what is passed on does not tell the folders of a machine."""
    return last_parts(path).rpartition("/")[2]


def last_parts(path: str) -> str:
    """Return a path as the end of it that tells models apart: its file and the folder of that."""
    parts = PurePath(path).parts
    return path if len(parts) <= 2 else f"…/{'/'.join(parts[-2:])}"


@dataclass(frozen=True, slots=True)
class InputWords:
    """Words for the inputs of a domain.

    Attributes:
        one: an input.
        many: inputs.
        levels: the steps that distances are counted in.
        cells: what is counted of an input where it differs from its seed.
        unchanged: how a difference is read, in a sentence.

    """

    one: str = "input"
    many: str = "inputs"
    levels: str = "levels"
    cells: str = "cells"
    unchanged: str = ""


_WORDS = {
    "image": InputWords(
        "image",
        "images",
        "gray levels",
        "pixels",
        unchanged="In a difference, mid-gray is a pixel that did not change, lighter one that rose,"
        " darker one that fell.",
    ),
    "audio": InputWords(
        "sound",
        "sounds",
        "levels",
        "samples",
        unchanged="A difference is the trigger less its seed; waveform and player of it are"
        " magnified by the factor beside it, and its spectrogram is not. The spectrograms of a"
        " finding share their colours: the brightest is its loudest cell, the darkest 80 dB below.",
    ),
    "array": InputWords(
        "array",
        "arrays",
        unchanged="A plot has seed and trigger, and below them the change, which is drawn on the"
        " scale of its largest.",
    ),
}


def input_words(pair: RunPair) -> InputWords:
    """Return the words for the inputs of a run.

    Args:
        pair: pair in the run's document.

    """
    return _WORDS.get(pair.domain, InputWords())


EDITS = "edits"


def answer_words(pair: RunPair) -> AnswerWords:
    """Return the words for the answers of a run.

    Args:
        pair: pair in the run's document.

    """
    return words_of(pair.task_name)


def views_of(entry: Finding) -> list[AnswerForm]:
    """Return an entry's answers as its task shows them; none where their classes say it all."""
    return [view.opened() for view in entry.answers or ()]


def answer_views(document: RunDocument, entry: Finding) -> tuple[AnswerForm, ...]:
    """Return how an entry's answers are shown: as its task chose, or its classes."""
    if entry.answers:
        return tuple(view.with_classes(document.classes) for view in views_of(entry))
    return (ClassesView("", document.classes, entry.probabilities, entry.labels),)


def seed_views(document: RunDocument, entry: Finding) -> tuple[AnswerForm, ...]:
    """Return how the answers to an entry's seed are shown; nothing where the task does not."""
    return tuple(view.opened().with_classes(document.classes) for view in entry.seed_answers or ())


def is_structured(entry: Finding) -> bool:
    """Whether an entry's answers are texts, objects or masks, whose decisions have no names."""
    return any(view.structured for view in views_of(entry))


def measured(entry: Finding) -> AnswerForm | None:
    """Return how far an entry's answers are apart, where that is measured; None of decisions.

    Of several outputs it is that which is farthest apart.
    """
    views = [view for view in views_of(entry) if view.measures]
    return max(views, key=lambda view: view.farness, default=None)


def compared_arms(document: RunDocument) -> tuple[str, str]:
    """Return the two arms that a run compares."""
    return ("twin" if document.find == "kernel" else "original", "device")


def decided(document: RunDocument, entry: Finding, arm: str) -> str:
    """Return what an arm decided, a score behind it; or how the arm failed.

    A dash where it was not asked. Values are no decision.
    """
    if arm not in entry.labels:
        return "–"
    if entry.labels[arm] is None:
        return "no answer" if named_kind(entry) else entry.kind
    name = decision_name(document, entry, arm)
    scores = [f"{score:.4g}" for view in views_of(entry) if (score := view.score(arm)) is not None]
    return f"{name} ({', '.join(scores)})" if scores else name


def decision_name(document: RunDocument, entry: Finding, arm: str) -> str:
    """Return the name of what an arm decided; of several heads or frames, those of all."""
    if not is_structured(entry) and (document.classes or not entry.answers):
        return class_name(document.classes, entry.labels[arm])
    return ", ".join(view.decision(arm) for view in answer_views(document, entry))


def decisions(document: RunDocument, entry: Finding) -> str:
    """Say who decided what, "original: Sneaker; twin, device: Sandal", or how far they differ."""
    apart = how_far_apart(document, entry)
    if apart is not None:
        return apart
    arms: dict[str, list[str]] = {}
    for arm in ARMS:
        if arm in entry.labels:
            arms.setdefault(decided(document, entry, arm), []).append(arm)
    said = [f"{', '.join(names)}: {said}" for said, names in arms.items()]
    edits = edited_words(document, entry)
    return "; ".join(said if edits is None else [*said, f"edit distance {edits}"])


def how_far_apart(document: RunDocument, entry: Finding) -> str | None:
    """Return how far the answers of the compared arms are apart; None where that is not measured.

    Of several outputs of values it is said of one.
    """
    views = [view for view in views_of(entry) if view.measures]
    if not is_structured(entry):
        views = views[:1]
    lines = (view.apart(compared_arms(document)) for view in views)
    return "; ".join(filter(None, lines)) or None


def edited_words(document: RunDocument, entry: Finding) -> int | None:
    """Return the edit distance of the compared arms' texts, in words; None of other answers."""
    texts = [view for view in views_of(entry) if EDITS in view.table_columns]
    edits = [view.edits(compared_arms(document)) for view in texts]
    known = [edit for edit in edits if edit is not None]
    return sum(known) if known and len(known) == len(texts) else None


def order_words(document: RunDocument, key: str) -> str:
    """Return in what order a table of entries is, and the measure of distances; or nothing.

    Args:
        document: the run.
        key: key of the list of entries; findings stand in the order of `worst_first`.

    """
    entries = document.lists[key]
    order = ""
    if key == "findings":
        labelled = any(entry.harm for entry in entries)
        order = "the most harmful first" if labelled else answer_words(document.pair).strongest
        if {counts(entry) for entry in entries} == {False, True}:
            rest = order.removesuffix(" first")
            order = f"those as near and strong as asked for first, then {rest}"
    view = next(filter(None, map(measured, entries)), None)
    words = "; ".join(filter(None, (order, "" if view is None else view.tolerance_words)))
    return words[:1].upper() + words[1:]


def answer_columns(entries: Iterable[Finding]) -> tuple[str, ...]:
    """Return the columns of a table of entries that say what was answered: arms, or distances.

    Texts have their edit distance behind the arms.
    """
    entries = tuple(entries)
    view = next(filter(None, map(measured, entries)), None)
    if view is not None:
        return view.table_columns
    views = [view for entry in entries for view in views_of(entry)]
    arms = tuple(arm for arm in ARMS if any(arm in entry.labels for entry in entries))
    return (*arms, *dict.fromkeys(name for view in views for name in view.table_columns))


def answer_cell(document: RunDocument, entry: Finding, column: str) -> str:
    """Return what one of `answer_columns` says of an entry."""
    if column in ARMS:
        return decided(document, entry, column)
    if column == EDITS:
        edits = edited_words(document, entry)
        return "–" if edits is None else str(edits)
    view = measured(entry)
    return view.cell(column) if view is not None and column in view.table_columns else "–"


def answer_gist(document: RunDocument, entry: Finding, column: str) -> str:
    """Return what `answer_cell` says, without scores, in which any two entries differ."""
    if column not in ARMS or entry.labels.get(column) is None:
        return answer_cell(document, entry, column)
    if is_structured(entry):
        return ", ".join(view.gist(column) for view in answer_views(document, entry))
    return decision_name(document, entry, column)
