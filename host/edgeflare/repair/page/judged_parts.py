"""The candidates of a repair and the judgement of the chosen one, as parts of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.repair.judging.judgement import SCORED
from edgeflare.repair.page.page_part import PagePart, PageTable
from edgeflare.repair.repair_terminal import deviating_on
from edgeflare.report.entry_names import number

CANDIDATES = "candidates"
"""The name of the part that the figure belongs to."""

_SCORE = (
    "Score: the mean over these sets of deviating and big inputs after, over those before."
    " Time: of an inference, over that of the model before, measured in turns on the device where"
    " that is greatest; a file with the same operators takes the same. Interval: 99 % of the median"
    " ratio, on each device; one is beyond the limit of time where all of it is. The front has the"
    " candidates that no other one betters in score, time and bytes."
)


def candidate_part(document: Mapping[str, Any]) -> PagePart:
    """Return the candidates, and those that are set aside with the reason."""
    tried = document["candidates"]
    header = ("candidate", "mark", "score", *SCORED, "time", "interval", "bytes", "seconds to make")
    rows = [_candidate(document, one) for one in tried if one["sets"] is not None]
    aside = [(one["name"], one["set_aside"]) for one in tried if one["set_aside"] is not None]
    return PagePart(
        CANDIDATES,
        "Candidates",
        _SCORE,
        [
            PageTable("Deviations on the inputs to choose by", header, rows),
            PageTable("Set aside", ("candidate", "why"), aside),
        ],
    )


def residual_part(residual: Mapping[str, Any]) -> PagePart:
    """Return the error that each block of the model before adds, the greatest first."""
    scores: Mapping[str, float] = residual["scores"]
    by_name = {one["name"]: one for one in residual["blocks"]}
    rows = [
        [name, by_name[name]["tensor"], f"{scores[name]:.4f}"]
        for name in sorted(scores, key=lambda name: -scores[name])
        if name in by_name
    ]
    return PagePart(
        "residual",
        "Block to blame",
        "The error that the operators of each block add themselves, by the size of what they make,"
        " in the model before.",
        [PageTable("blocks", ("block", "tensor", "error"), rows)],
        [("blamed", str(residual["blamed"] or "none"))],
    )


def judged_part(document: Mapping[str, Any]) -> PagePart:
    """Return the chosen candidate on the inputs that judge; the document has some."""
    return PagePart(
        "judged",
        "The chosen candidate",
        "An input deviates where the label is not the original's, ties included; it is big where"
        " the original's two best probabilities are more than 1/128 apart, and strict without a"
        " tie. Mended inputs deviate before and not after, broken ones the other way round; p is"
        " that of a sign test.",
        [judged_table(document), _accuracy(document), _devices(document)],
    )


def judged_table(document: Mapping[str, Any]) -> PageTable:
    """Return a table of the sets of inputs that judge; the document has some."""
    header = ("set", "inputs", "deviating", "big", "strict", "mended", "broken", "p")
    rows = [
        (
            name,
            f"{one['after']['asked']:,}",
            *(_change(one, key) for key in ("deviating", "big", "strict")),
            f"{one['mended']:,}",
            f"{one['broken']:,}",
            f"{one['p']:.1g}",
        )
        for name, one in document["judged"].items()
    ]
    return PageTable(f"{document['chosen']} on the inputs that judge", header, rows)


def search_parts(document: Mapping[str, Any]) -> Iterator[PagePart]:
    """Yield the run and the search of the repaired model, where there was one; of either schema."""
    again = document["again"]
    if again is None:
        return
    by = again["stopped_by"]
    stopped = f" It was stopped before its end: {INTERRUPTED_BY.get(by, by)}." if by else ""
    rows = []
    for when in ("before", "after"):
        one = again[when]
        rate = one["success_rate"]
        success = "–" if rate is None else f"{rate:.1%}"
        counts = (f"{one[key]:,}" for key in ("deviating_seeds", "findings"))
        rows.append((when, *counts, success, number(one["mean_queries"])))
    header = ("model", "deviating seeds", "findings", "success", "mean queries")
    yield PagePart(
        "again",
        "Searched again",
        f"The run, and the same search of the repaired model, by {again['strategy']}.{stopped}",
        [PageTable("Searches", header, rows)],
    )


def _candidate(document: Mapping[str, Any], one: Mapping[str, Any]) -> Sequence[str]:
    marks = [
        *(["chosen"] if one["name"] == document["chosen"] else []),
        *(["front"] if one["name"] in document["front"] else []),
        *(["beyond the limits"] if one["needs"] else []),
    ]
    ratio, sets = one["latency_ratio"], one["sets"]
    return (
        one["name"],
        ", ".join(marks),
        number(one["score"], 2),
        *(_change(sets[name], "deviating") for name in SCORED),
        "–" if ratio is None else f"× {ratio:.2f}",
        ", ".join(f"{cost['ratio_low']:.2f} to {cost['ratio_high']:.2f}" for cost in one["latency"])
        or "–",
        "–" if one["bytes"] is None else f"{one['bytes']:,}",
        number(one["seconds"]),
    )


def _change(one: Mapping[str, Any], key: str) -> str:
    return f"{one['before'][key]:,} → {one['after'][key]:,}"


def _accuracy(document: Mapping[str, Any]) -> PageTable:
    rows = [
        (
            name,
            f"{one['after']['labelled']:,}",
            " → ".join(number(one[when]["right"], 0) for when in ("before", "after")),
            *(f"{one['accuracy'][change]:,}" for change in ("mended", "broken")),
            f"{one['accuracy']['p']:.1g}",
        )
        for name, one in document["judged"].items()
        if one["accuracy"] is not None
    ]
    header = ("set", "labelled", "right", "right only after", "right only before", "p (McNemar)")
    return PageTable("By true labels", header, rows)


def _devices(document: Mapping[str, Any]) -> PageTable:
    rows = []
    for one in document["on_devices"]:
        sums = (deviating_on(one, when) for when in ("before", "after"))
        same = f"{one['same_labels']:,} of {one['asked']:,}"
        rows.append((one["device"], " → ".join(f"{count:,}" for count in sums), same))
    header = ("device", "deviating", "the label that the host foretold")
    return PageTable("The same inputs on the devices", header, rows)
