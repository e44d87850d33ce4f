"""A repair as a page: the candidates, the chosen one where it is judged, and what was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import structs

from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import details, number
from edgeflare.pages.page import Block, Facts, Illustration, Page, Section, Sentences, Table
from edgeflare.repair.judging.fairness import MEAN_OF_BOTH, Fairness, FairnessRepair
from edgeflare.repair.judging.judgement import SCORED, Judgement, SetJudgement
from edgeflare.repair.judging.judgement_inputs import SetName
from edgeflare.repair.judging.repair_examples import FOLDER, ChangeKind
from edgeflare.repair.repair_document import (
    OfferedCandidate,
    RepairDocument,
    SearchComparison,
    TriedCandidate,
)
from edgeflare.repair.shift_details import REPAIRERS, FoundShifts, ShiftDetails
from edgeflare.run.run_directory import REPAIR_DOCUMENT, RunDirectory
from edgeflare.statistics.bootstrap import Estimate

_SCORE = (
    "Score: the mean over these sets of deviating and big inputs after, over those before."
    " Time: of an inference, over that of the model before, measured in turns on the device where"
    " that is greatest; a file with the same operators takes the same. Interval: 99 % of the median"
    " ratio, on each device; one is beyond the limit of time where all of it is. The front has the"
    " candidates that no other one betters in score, time and bytes."
)

_FAIR = (
    "SPD: how much more often the favourable label, the last class, is given in the first group;"
    " AAOD: the mean size of that among inputs without and with that label; EOD: that among inputs"
    " with it. The first group has the lesser value of the attribute. distilled-mean learns the"
    " mean of both answers, without slices."
)

_FAIR_SETS = {
    "choose": "On the seeds that fit and choose",
    "judge": "On the seeds that judge",
    "fresh": "On fresh inputs",
}

_DEVIATING = (
    "An input deviates where the decision is not the original's, ties included; it is big where the"
    " original's two best probabilities are more than 1/128 apart, or what takes their place where"
    " decisions are no labels, and strict without a tie. Mended"
    " inputs deviate before and not after, broken ones the other way round; p is that of a sign"
    " test."
)

_REPAIRERS = (
    "Shares of the held-out inputs, a fifth of the seeds at a time. Net: by how many points"
    " deviations fall over triggers, agreeing inputs and seeds. As they come: deviations after over"
    " those before, on inputs that are sampled without the original."
)

_LEARNED = (
    "Candidates learn from the original's answers and tensors on the seeds to fit with and on"
    " inputs made from them; no input that judges, and none of --test, was used before they were"
    " chosen."
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
    if repaired is not None:
        more = f"{repaired.bytes_after - repaired.bytes_before:+,} bytes"
        yield f"{repaired.file}, by {document.chosen}, has {more}, and takes {repaired.change}."
        if repaired.recipe is not None:
            yield (
                "It computes in float or int16, at least in part; --target int8-only allows"
                " integers of 8 bits alone."
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
        f" deviate, at {_ratio(tried.latency_ratio)} of the time and {number(tried.bytes, 0)}"
        f" bytes, which needs {cost}: {' '.join(offered.options)}"
    )


def _sections(document: RepairDocument, directory: RunDirectory) -> Iterator[Section]:
    if document.fairness is not None:
        yield _fairness(document, document.fairness)
        yield _asked(document)
        return
    yield _candidates(document)
    if document.judged is not None:
        yield _judged(document, document.judged)
    shifts = [
        candidate.details.shifts
        for candidate in document.candidates
        if candidate.details.shifts is not None
    ]
    blocks = [block for shift in shifts for block in _repairers(shift)]
    yield Section(id="repairers", title="Repairers", words=_REPAIRERS, blocks=blocks)
    yield Section(id="residual", title="Block to blame", blocks=list(_blamed(document)))
    if document.again is not None:
        yield searched_again(document.again)
    told = [
        block
        for candidate in document.candidates
        for block in _details(candidate, document.classes)
    ]
    yield Section(id="details", title="What methods say", blocks=told, brief=False)
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


def _fairness(document: RepairDocument, made: FairnessRepair) -> Section:
    """Return what became of the dependence on an attribute, by candidate."""
    tables = [
        Table(
            title=_FAIR_SETS[name],
            header=("model", "rows", "accuracy", "SPD", "AAOD", "EOD"),
            rows=[
                (row.name, *_fairness_cells(found))
                for row in made.rows
                if (found := getattr(row, name)) is not None
            ],
        )
        for name in _FAIR_SETS
    ]
    devices = Table(
        title=f"{document.chosen} on the devices, on the seeds that judge",
        header=("device", "rows", "accuracy", "SPD", "AAOD", "EOD"),
        rows=[(device.device, *_fairness_cells(device.judge)) for device in made.devices],
    )
    columns = ", ".join(map(str, made.columns))
    said = [f"{document.seeds}.", f"Attribute: column {columns}.", *_plainly(document, made)]
    return Section(
        id="fairness", title="Fairness", words=_FAIR, blocks=[Sentences(said), *tables, devices]
    )


def _plainly(document: RepairDocument, made: FairnessRepair) -> Iterator[str]:
    """Yield that what needs no training does as well, where it does."""
    rows = {row.name: row for row in made.rows}
    mean, chosen = rows[MEAN_OF_BOTH], rows.get(document.chosen or "")
    if chosen is None:
        return
    sides = [(mean.judge, chosen.judge), (mean.fresh, chosen.fresh)]
    if all(plain.bias <= other.bias for plain, other in sides if plain and other):
        yield (
            "The mean of the model's answers to an input with either value of the attribute does as"
            " well, without any training, in twice the time."
        )


def _fairness_cells(one: Fairness) -> tuple[str, ...]:
    return (
        f"{one.rows:,}",
        f"{one.accuracy:.2%}",
        f"{one.spd:+.3f}",
        f"{one.aaod:.3f}",
        f"{one.eod:+.3f}",
    )


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
        _ratio(one.latency_ratio),
        ", ".join(intervals) or "–",
        number(one.bytes, 0),
        number(one.seconds),
    )


def _change(before: int, after: int) -> str:
    return f"{before:,} → {after:,}"


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"× {ratio:.2f}"


def _judged(document: RepairDocument, judgement: Judgement) -> Section:
    """Return the chosen candidate on the inputs that judge, on the host and on each device."""
    measure = [] if document.measured_as is None else [f"mean {document.measured_as}"]
    sets = Table(
        title=f"{document.chosen} on the inputs that judge",
        header=("set", "inputs", "deviating", "big", "strict", *measure, "mended", "broken", "p"),
        rows=[
            (
                name,
                f"{input_set.after.asked:,}",
                _change(input_set.before.deviating, input_set.after.deviating),
                _change(input_set.before.big, input_set.after.big),
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
                f"{on_device.same_labels:,} of {on_device.asked:,}",
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
                (name, f"{attacked.asked:,}", f"{counts.before:,}", f"{counts.after:,}")
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


def _repairers(shifts: ShiftDetails) -> Iterator[Block]:
    """Yield what shifts were fitted to, and the effect of each repairer on held-out folds."""
    inputs, queries = shifts.inputs, shifts.queries
    fitted = (
        f"{inputs.triggers:,} triggers and their seeds, {inputs.near_boundary_agreeing:,}"
        f" near-boundary inputs that agree, {inputs.near_boundary_deviating:,} that do not"
        f" ({queries.known + queries.near_boundary:,} queries)."
    )
    left = f"{inputs.not_reproduced:,} triggers are left out: they do not deviate here and now."
    yield Sentences([fitted, left] if inputs.not_reproduced else [fitted])
    induced = ("induced on seeds", "induced on agreeing")
    yield Table(
        title="On held-out folds",
        header=("repairer", "repaired", *induced, "net", "as they come"),
        rows=[
            (
                REPAIRERS[name],
                f"{repairer.repair_ratio:.1%}",
                f"{repairer.inducing_ratio:.1%}",
                f"{repairer.induced_agreeing:.1%}",
                _points(repairer.net),
                _ratio(repairer.unled_ratio),
            )
            for name, repairer in shifts.repairers.items()
        ],
        note="Net is in points, with its 95 % interval.",
    )


def _points(net: Estimate) -> str:
    return f"{100 * net.value:+.1f} ({100 * net.low:+.1f} … {100 * net.high:+.1f})"


def _blamed(document: RepairDocument) -> Iterator[Block]:
    """Yield which block of the model before is to blame, by each way, and the error of each."""
    searched = (candidate.details.precision for candidate in document.candidates)
    blamed = dict(
        next((known.blamed for known in searched if known and known.blamed is not None), {})
    )
    residual = document.residual
    if residual is not None:
        blamed["residual"] = residual.blamed
    ways = [f"{block} by {way}" for way, block in blamed.items() if block is not None]
    yield Sentences([f"To blame: {', '.join(ways)}."] if ways else [])
    if residual is not None:
        tensors = {block.name: block.tensor for block in residual.blocks}
        ranked = sorted(residual.scores.items(), key=lambda score: -score[1])
        yield Table(
            title="Errors of the blocks",
            header=("block", "tensor", "error"),
            rows=[
                (name, tensors[name], f"{score:.4f}") for name, score in ranked if name in tensors
            ],
            note="What the operators of each add themselves, by the size of what they make, in the"
            " model before.",
            numbers_from=2,
            most=3,
            order="worst",
            missed_least=("tensor",),
        )


def _details(candidate: TriedCandidate, classes: Sequence[str]) -> Iterator[Block]:
    """Yield what a method says of a candidate, but for what shifts have tables of their own for.

    Objects in a list or by name are a table, and the rest are facts.
    """
    shifts = candidate.details.shifts
    for name, section in msgspec.to_builtins(candidate.details).items():
        told = ("repairers", "shifts") if name == "shifts" else ()
        values = {key: value for key, value in section.items() if key not in told}
        facts = details({key: value for key, value in values.items() if not _rows(value)})
        yield Facts(f"{name.capitalize()}: {candidate.name}", facts)
        yield from (_table(key, rows) for key, value in values.items() if (rows := _rows(value)))
    if shifts is not None:
        yield _moved(shifts.shifts, classes)


def _rows(value: object) -> list[Mapping[str, Any]]:
    """Return the rows of what can be a table: objects in a list, or by name in an object."""
    if isinstance(value, Mapping) and all(isinstance(inner, Mapping) for inner in value.values()):
        return [{"": name, **inner} for name, inner in value.items()]
    if isinstance(value, list | tuple) and all(isinstance(element, Mapping) for element in value):
        return list(value)
    return []


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return Table(
        title=title.replace("_", " "),
        header=[key.replace("_", " ") for key in keys],
        rows=[[_cell(key, row.get(key)) for key in keys] for row in rows],
    )


def _cell(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, text in details(value)) or "–"
    return ", ".join(text for _, text in details({key: value})) or "–"


def _moved(shifts: FoundShifts, classes: Sequence[str]) -> Table:
    """Return the boundaries that shifts move."""
    rows = [
        (*(class_name(classes, label) for label in pair.classes), f"{pair.steps:+}")
        for pair in shifts.pairs
    ]
    return Table(
        title="Shifts",
        header=("class", "against", "steps"),
        rows=rows,
        note="By how many steps the boundary between two classes moves in favour of the first; a"
        f" step is {shifts.step:g}.",
    )


def _asked(document: RepairDocument) -> Section:
    test = document.request.test
    # The page does not tell the folders of the machine that the repair ran on.
    asked = structs.replace(document.request, test=None if test is None else PurePath(test).name)
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
