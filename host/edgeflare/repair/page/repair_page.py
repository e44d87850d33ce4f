"""A repair as a page: the candidates, the chosen one where it is judged, and what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath

from msgspec import structs

from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.pages.facts import count_of, details, number
from edgeflare.pages.page import Block, Facts, Illustration, Page, Section, Sentences, Table
from edgeflare.repair.judging.judgement import SCORED, Judgement, SetJudgement
from edgeflare.repair.judging.judgement_inputs import SetName, seeds_among_said
from edgeflare.repair.judging.repair_examples import FOLDER, ChangeKind
from edgeflare.repair.page.labelled_sections import labelled_sections
from edgeflare.repair.page.method_sections import (
    blamed_section,
    details_section,
    ratio_text,
    repairers_section,
)
from edgeflare.repair.repair_document import (
    OfferedCandidate,
    RepairDocument,
    SearchComparison,
    TriedCandidate,
)
from edgeflare.run.run_directory import REPAIR_DOCUMENT, RunDirectory

_SCORE = (
    "Score: the mean over these sets of deviating and big inputs after, over those before."
    " Time: of an inference, over that of the model before, measured in turns on the device where"
    " that is greatest; a file with the operators of another one takes its time. It is measured"
    " where a candidate surely gains, and more than those before it within the limits. Interval:"
    " 99 % of the median ratio, on each device; one is beyond the limit of time where all of it is."
    " The front has the candidates with a time that no other one betters in score, time and bytes."
)

_DEVIATING = (
    "An input deviates where the decision is not the original's, ties included; it is big where the"
    " original's two best probabilities are more than 1/128 apart, or what takes their place where"
    " decisions are no labels, and strict without a tie. Mended"
    " inputs deviate before and not after, broken ones the other way round; p is that of a sign"
    " test."
)

_LEARNED = (
    "Candidates learn from the original's answers and tensors on the seeds to fit with and on"
    " inputs made from them; no input that judges, and none of --test that is no seed, was used"
    " before they were chosen."
)

_SHOWN = (
    "Those on which the original's two best probabilities are furthest apart, of each seed one"
    f" where there are enough. They lie in {FOLDER} beside {REPAIR_DOCUMENT}, without loss:"
    " pictures here may be smaller."
)


def repair_page(document: RepairDocument, directory: RunDirectory) -> Page:
    """Return what a repair says.

    Whoever draws its pictures is refused where the document names a file outside of the directory.

    Args:
        document: as `read_repair` returns it.
        directory: where it lies, and its inputs. One that is gone is missing in the page, too.

    """
    return Page(
        kind="EdgeFlare repair",
        name=document.pair.name,
        on=_devices(document),
        mark="pass" if document.written else "attention",
        lead=f"{'A repaired' if document.written else 'No'} model is written: {document.why}",
        words=list(_words(document)),
        sections=list(_sections(document, directory)),
        source=REPAIR_DOCUMENT,
        version=document.edgeflare,
    )


def searched_again(again: SearchComparison) -> Section:
    """Return the run and the search of the repaired model side by side."""
    by = again.stopped_by
    stopped = [f"It was stopped before its end: {INTERRUPTED_BY.get(by, by)}."] if by else []
    said = f"The run, and the same search of the repaired model, by {again.strategy}."
    rows = [
        (
            when,
            f"{figures.deviating_seeds:,}",
            f"{figures.findings:,}",
            "–" if figures.success_rate is None else f"{figures.success_rate:.1%}",
            number(figures.mean_queries),
        )
        for when, figures in (("before", again.before), ("after", again.after))
    ]
    header = ("model", "deviating seeds", "findings", "success", "mean queries")
    searches = Table(title="", header=header, rows=rows)
    return Section(
        id="again", title="Searched again", blocks=[Sentences([said, *stopped]), searches]
    )


def _devices(document: RepairDocument) -> str:
    return ", ".join(device.name for device in document.devices)


def _words(document: RepairDocument) -> Iterator[str]:
    """Yield what is written, and what more cost than the limits allow would give."""
    repaired, offered = document.repaired, document.offered
    if repeated := seeds_among_said(document.fresh_seeds):
        yield repeated
    if repaired is not None:
        more = repaired.size_bytes - repaired.size_before_bytes
        size = f"{count_of(abs(more), 'byte')} {'larger' if more > 0 else 'smaller'}"
        size = size if more else "as large as before"
        yield f"{repaired.file}, by {document.chosen}, is {size}; its time: {repaired.change}."
        if repaired.more_in_float:
            yield (
                "It computes in float, at least in part; --target int8-only allows integers alone."
            )
    tried = None if offered is None else document.tried(offered.candidate)
    if offered is not None and tried is not None:
        yield _offer(document, offered, tried)


def _offer(document: RepairDocument, offered: OfferedCandidate, tried: TriedCandidate) -> str:
    """Return what a candidate beyond the limits would give.

    The counts are those of the inputs that judge, and of the written model or the one before.
    """
    after = sum(input_set.after.deviating for input_set in offered.judged.scored)
    if document.written and document.judged is not None:
        instead = sum(input_set.after.deviating for input_set in document.judged.scored)
    else:
        instead = sum(input_set.before.deviating for input_set in offered.judged.scored)
    cost = " and ".join(f"{option} {needed}" for option, needed in tried.needs.items())
    return (
        f"{offered.candidate}: {after:,} instead of {instead:,} of these inputs near the boundary"
        f" deviate, at {ratio_text(tried.latency_ratio)} of the time and"
        f" {number(tried.size_bytes, 0)}"
        f" bytes, which needs {cost}: {' '.join(offered.options)}"
    )


def _sections(document: RepairDocument, directory: RunDirectory) -> Iterator[Section]:
    if by_labels := list(labelled_sections(document)):
        yield from by_labels
        yield _asked(document)
        return
    yield _candidates(document)
    if document.judged is not None:
        yield _judged(document, document.judged)
    yield repairers_section(document)
    yield blamed_section(document)
    if document.search is not None:
        yield searched_again(document.search)
    yield details_section(document)
    kinds: tuple[ChangeKind, ...] = ("mended", "broken")
    for change in kinds:
        shown = [shown_input for shown_input in document.shown if shown_input.change == change]
        drawn = [Illustration(partial(_drawn_inputs, document, directory, change))] if shown else []
        yield Section(
            id=change,
            title=f"Inputs that are {change}",
            words=_SHOWN,
            blocks=drawn,
            brief=False,
            count=len(shown),
        )
    yield _asked(document)


def _candidates(document: RepairDocument) -> Section:
    """Return the candidates, and those that are set aside with the reason."""
    tried = document.candidates
    front = f"Pareto front of score, time and bytes: {', '.join(document.front)}."
    judged = [candidate.sets for candidate in tried if candidate.sets is not None]
    sets = [name for name in judged[0].by_set if name in SCORED] if judged else []
    header = ("candidate", "mark", "score", *sets, "time", "interval", "bytes", "seconds to make")
    return Section(
        id="candidates",
        title="Candidates",
        words=_SCORE,
        blocks=[
            Illustration(partial(_drawn_front, document)),
            Sentences([f"{document.seeds}.", _LEARNED, *([front] if document.front else [])]),
            Table(
                title=f"Deviations on the inputs to choose by, and time on {_devices(document)}",
                header=header,
                rows=[
                    _candidate(document, candidate, candidate.sets)
                    for candidate in tried
                    if candidate.sets is not None
                ],
                numbers_from=2,
                missed_least=("seconds to make", "interval", "mark", "bytes"),
            ),
            Table.of_words(
                ("candidate", "why"),
                [
                    (candidate.name, candidate.set_aside)
                    for candidate in tried
                    if candidate.set_aside is not None
                ],
                title="Set aside",
            ),
        ],
    )


def _candidate(document: RepairDocument, one: TriedCandidate, sets: Judgement) -> Sequence[str]:
    marks = {
        "chosen": one.name == document.chosen,
        "front": one.name in document.front,
        "beyond the limits": bool(one.needs),
    }
    intervals = (f"{cost.ratio_low:.2f} to {cost.ratio_high:.2f}" for cost in one.latency)
    return (
        one.name,
        ", ".join(mark for mark, is_so in marks.items() if is_so),
        number(one.score, 2),
        *(_change(each.before.deviating, each.after.deviating) for each in sets.scored),
        ratio_text(one.latency_ratio),
        ", ".join(intervals) or "–",
        number(one.size_bytes, 0),
        number(one.seconds),
    )


def _change(before: int, after: int) -> str:
    return f"{before:,} → {after:,}"


def _judged(document: RepairDocument, judgement: Judgement) -> Section:
    """Return the chosen candidate on the inputs that judge, on the host and on each device."""
    measure = [] if document.measured_as is None else [f"mean {document.measured_as}"]
    sets = Table(
        title=f"{document.chosen} on the inputs that judge",
        header=("set", "inputs", "deviating", "big", "strict", *measure, "mended", "broken", "p"),
        rows=[
            (
                name,
                f"{input_set.after.inputs:,}",
                _change(input_set.before.deviating, input_set.after.deviating),
                _change(input_set.before.wide_margin, input_set.after.wide_margin),
                _change(input_set.before.strict, input_set.after.strict),
                *(
                    " → ".join(
                        number(each.measured, 4) for each in (input_set.before, input_set.after)
                    )
                    for _ in measure
                ),
                f"{input_set.mended:,}",
                f"{input_set.broken:,}",
                f"{input_set.p:.1g}",
            )
            for name, input_set in judgement.by_set.items()
        ],
    )
    devices = Table(
        title="The same inputs on the devices",
        header=("device", "deviating", "the decision that the host foretold"),
        rows=[
            (
                on_device.device,
                _change(*on_device.deviating),
                f"{on_device.same_labels:,} of {on_device.inputs:,}",
            )
            for on_device in document.on_devices
        ],
    )
    return Section(
        id="judged",
        title="The chosen candidate",
        words=_DEVIATING,
        blocks=[sets, _accuracy(judgement.by_set), devices, *_robustness(document)],
    )


def _robustness(document: RepairDocument) -> Iterator[Block]:
    """Yield how many seeds keep their label under attack, before and after."""
    attacked = document.robustness
    if attacked is not None and attacked.why_not is not None:
        yield Sentences([f"Robustness is not measured: {attacked.why_not}."])
    elif attacked is not None:
        yield Table(
            title="Robustness",
            header=("attack", "seeds", "before", "after"),
            rows=[
                (name, f"{attacked.seeds:,}", f"{counts.before:,}", f"{counts.after:,}")
                for name, counts in attacked.kept.items()
            ],
            note="Seeds that judge and keep the original's label, each of the two models attacked"
            f" by its own gradient within {attacked.radius:g} levels.",
        )


def _accuracy(sets: Mapping[SetName, SetJudgement]) -> Table:
    rows = [
        (
            name,
            f"{input_set.after.labelled:,}",
            " → ".join(number(figures.right, 0) for figures in (input_set.before, input_set.after)),
            f"{input_set.accuracy.mended:,}",
            f"{input_set.accuracy.broken:,}",
            f"{input_set.accuracy.p:.1g}",
        )
        for name, input_set in sets.items()
        if input_set.accuracy is not None
    ]
    header = ("set", "labelled", "right", "right only after", "right only before", "p (McNemar)")
    return Table(title="By true labels", header=header, rows=rows)


def _asked(document: RepairDocument) -> Section:
    test = document.plan.test
    # The page does not tell the folders of the machine that the repair ran on.
    asked = structs.replace(
        document.plan,
        test=None if test is None else PurePath(test).name,
        checkpoints=tuple(PurePath(file).name for file in document.plan.checkpoints),
    )
    devices = (
        Facts(f"Device {device.name}", details(device.provenance)) for device in document.devices
    )
    return Section(
        id="ran",
        title="What was asked, and where it ran",
        blocks=[Facts("Request", details(asked)), *devices],
        brief=False,
    )


def _drawn_front(document: RepairDocument) -> str:
    from edgeflare.repair.page.front_figure import front_figure  # noqa: PLC0415 - needs an extra

    return front_figure(document)


def _drawn_inputs(document: RepairDocument, directory: RunDirectory, change: ChangeKind) -> str:
    from edgeflare.repair.page.input_gallery import input_gallery  # noqa: PLC0415 - needs an extra

    return input_gallery(document, directory, change)
