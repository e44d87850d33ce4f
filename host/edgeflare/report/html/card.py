"""One entry of a run as a card of the page: what it shows, ready to be written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import count_of, in_words, number, shortened
from edgeflare.pages.page_allowance import PageAllowance
from edgeflare.report.entry_words import (
    answer_views,
    compared_arms,
    decided,
    decision_name,
    decisions,
    edited_words,
    is_structured,
    measured,
    named_kind,
    seed_of,
    seed_views,
    sort,
)
from edgeflare.report.html.answered_shots import (
    Blocks,
    ShotGroup,
    answer_blocks,
    answered_shots,
    shot_groups,
    without_shown,
)
from edgeflare.report.html.explanation_view import ExplanationView, LayerView
from edgeflare.report.html.input_views import StoredView, stored_views
from edgeflare.run.harm import harm_of_entry, rank
from edgeflare.run.nearness import counts
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding, RunDocument

HEIGHT = 40
"""Units of the drawing that the longest bar of either direction takes."""

TITLE = 60
"""Characters of an answer in a card's title; a text may have thousands."""


@dataclass(frozen=True, slots=True)
class EntryCard:
    """An entry, as its card shows it.

    Attributes:
        entry: the entry of the document.
        sort: cause of the deviation, or how an arm failed.
        kind: kind of the deviation, "object-vanished"; empty where the task tells none apart.
        edits: the edit distance of the compared arms' texts; None of other answers.
        harm: who was right, "original right"; None where that is not known.
        harm_key: the same, or why nobody can be said to be right, as the page chooses by it.
        rank: position of the entry by harm, from 0.
        counts: whether it is as near and as strong as was asked for.
        seed: id of the seed, and the name of the file where it has one of its own.
        title: the decisions of the compared arms, "Sneaker → Sandal".
        words: who decided what.
        truth: the seed's own label or target, in a sentence; None where it has neither.
        labels: the names of the classes that an arm decided on, by their numbers; none of answers
            with structure, whose numbers mean nothing beside other entries.
        answers: what the arms answered, a block for each head of the model; texts of sounds lie in
            `shots`.
        seed_answers: the same of the seed, where that is shown.
        operators: those applied, in order, repetitions counted.
        shots: inputs of the entry, a group for each of the model's.
        explanation: why it deviates, where that was looked for.
        divergence: the plot of that.

    """

    entry: Finding
    sort: str
    kind: str
    edits: int | None
    harm: str | None
    harm_key: str
    rank: int
    counts: bool
    seed: str
    title: str
    words: str
    truth: str | None
    labels: Mapping[int, str]
    answers: Blocks
    seed_answers: Blocks
    operators: tuple[str, ...]
    shots: tuple[ShotGroup, ...]
    explanation: ExplanationView | None
    divergence: _Divergence | None


def make_card(
    document: RunDocument,
    entry: Finding,
    directory: RunDirectory,
    allowance: PageAllowance,
    explanation: ExplanationView | None = None,
) -> EntryCard:
    """Make the card of an entry.

    Args:
        document: the run.
        entry: a finding, or another entry of the document.
        directory: where its inputs are.
        allowance: what its figures may weigh; what its sounds take is taken from it.
        explanation: why it deviates, where that was looked for.

    """
    stored = stored_views(directory, entry, document.pair)
    groups = shot_groups(stored, allowance)
    answers = _answers(document, entry, stored, groups, allowance)
    groups = answered_shots(groups, answers)
    *on_seed, on_trigger = (without_shown(groups, blocks) for blocks in answers.values())
    # Repetitions are joined: a, a, b becomes "a ×2", "b".
    runs = ((name, len(list(group))) for name, group in groupby(entry.operators))
    return EntryCard(
        entry=entry,
        sort=sort(entry),
        kind=entry.kind if named_kind(entry) else "",
        edits=edited_words(document, entry),
        harm=in_words(entry.harm) if entry.harm else None,
        harm_key=harm_of_entry(entry),
        rank=rank(entry),
        counts=counts(entry),
        seed=seed_of(entry),
        title=_title(document, entry),
        words=decisions(document, entry),
        truth=_truth(document, entry),
        labels=_labels(document, entry),
        answers=on_trigger,
        seed_answers=tuple(block for blocks in on_seed for block in blocks),
        operators=tuple(name if times == 1 else f"{name} ×{times}" for name, times in runs),
        shots=groups,
        explanation=explanation,
        divergence=None if explanation is None else divergence_of(explanation),
    )


def _answers(
    document: RunDocument,
    entry: Finding,
    stored: Sequence[StoredView],
    groups: Sequence[ShotGroup],
    allowance: PageAllowance,
) -> dict[str, Blocks]:
    """Return the blocks of the answers by the input that they are of, the trigger last.

    A seed that deviates itself is its own trigger.
    """
    views = {"seed": answer_views(document, entry)}
    if any(view.what == "trigger" for view in stored):
        views = {"seed": seed_views(document, entry), "trigger": answer_views(document, entry)}
    return answer_blocks(views, compared_arms(document), groups, allowance.picture)


def answer_pictures(entry: Finding) -> int:
    """Return how many pictures the answers of an entry have in a page."""
    return sum(
        view.opened().pictures
        for views in (entry.answers, entry.seed_answers)
        for view in views or ()
    )


def _title(document: RunDocument, entry: Finding) -> str:
    """Return what the two compared arms decided, or how far their values are apart."""
    if not entry.labels:
        return str(entry.kind)
    view = measured(entry)
    if view is not None and view.title is not None:
        return view.title
    said = [decided(document, entry, arm) for arm in compared_arms(document)]
    if is_structured(entry):
        said = [shortened(name, TITLE) for name in said]
    return " → ".join(said)


def _truth(document: RunDocument, entry: Finding) -> str | None:
    """Return the seed's target, or its label where answers are classes; None without either."""
    if entry.seed_target:
        return f"Target: {shortened(entry.seed_target, TITLE)}."
    if entry.seed_label is None or not _chosen(entry):
        return None
    return f"Labelled {class_name(document.classes, entry.seed_label)}."


def _labels(document: RunDocument, entry: Finding) -> Mapping[int, str]:
    """Return the names of what an arm decided on, by number; of values and structures none."""
    if not _chosen(entry):
        return {}
    return {
        label: decision_name(document, entry, arm)
        for arm, label in sorted(entry.labels.items(), key=lambda labelled: labelled[1] or 0)
        if label is not None
    }


def _chosen(entry: Finding) -> bool:
    """Whether the arms decide on one of several classes."""
    return measured(entry) is None and not is_structured(entry)


@dataclass(frozen=True, slots=True)
class _Divergence:
    """The plot: device and twin upwards, twin and original downwards, each to its own scale.

    Attributes:
        width: width of the drawing, one for each operator.
        up: the bars of device and twin, as the data of an SVG path.
        down: bars of twin and original, likewise.
        begins: the place of the operator where the deviation starts, or None.
        words: what it shows.

    """

    width: int
    up: str
    down: str
    begins: float | None
    words: str


def divergence_of(explanation: ExplanationView) -> _Divergence | None:
    """Return the plot of an explanation; None where no layer is known."""
    layers = explanation.layers
    if not layers:
        return None
    names = [layer.name for layer in layers]
    kernel = [layer.kernel for layer in layers]
    compression = [layer.compression for layer in layers]
    said = [
        part
        for part in (
            _words("up, device and twin", kernel, names, explanation.unit),
            _apart(layers),
            _words("down, what is new of twin and original", compression, names, "units"),
        )
        if part
    ]
    begins = [place + 0.5 for place, layer in enumerate(layers) if layer.begins]
    # A layer whose difference has another scale has the shortest bar.
    real = "".join(f"M{n}.5 {HEIGHT}v-1" for n, layer in enumerate(layers) if layer.real)
    along = f"Along {count_of(len(layers), 'operator')}"
    return _Divergence(
        width=len(layers),
        up=_bars(kernel, -1) + real,
        down=_bars(compression, 1),
        begins=begins[0] if begins else None,
        words=f"{along}: {'; '.join(said) or 'no difference'}",
    )


def _bars(values: Sequence[float | None], direction: int) -> str:
    """Return bars from the middle line; any difference at all is at least one unit long."""
    most = max((value for value in values if value is not None), default=0.0)
    return "".join(
        f"M{place}.5 {HEIGHT}v{direction * max(1, round(HEIGHT * value / most))}"
        for place, value in enumerate(values)
        if value
    )


def _apart(layers: Sequence[LayerView]) -> str:
    """Say how far device and twin are apart where the network is not quantized."""
    known = [(layer.real, layer.name) for layer in layers if layer.real]
    if not known:
        return ""
    most, name = max(known, key=lambda entry: entry[0])
    return f"not quantized, at most {_figure(most)} at {name}"


def _figure(value: float) -> str:
    """Return a figure above 0 in words that do not round it to 0."""
    return f"{value:.2g}" if value < 1e-3 else number(value, 1 if value >= 1 else 4)


def _words(what: str, values: Sequence[float | None], names: Sequence[str], unit: str) -> str:
    """Say how large the largest difference is, and where."""
    known = [(value, name) for value, name in zip(values, names, strict=True) if value]
    if not known:
        return ""
    most, name = max(known, key=lambda entry: entry[0])
    return f"{what}, at most {_figure(most)} {unit} at {name}"
