"""The neuron coverage of a run as a table and sentences."""

from __future__ import annotations

from typing import Final

from edgeflare.pages.page import Block, Sentences, Table
from edgeflare.run.run_document import RunDocument

NOT_MEANT: Final = (
    "More coverage is not more deviations (Harel-Canada et al., FSE 2020): on two LeNets 60"
    " findings added to the coverage of their seeds what 60 other seeds did, and the coverage of"
    " one image told triggers from seeds with an AUC of .55 to .77 (.5 is chance), without the"
    " scores, which tell how near a boundary is, of .41 to .64."
)
"""What `benchmarks/coverage_of_triggers.py` measured."""


def coverage_blocks(document: RunDocument) -> list[Block]:
    """Return the neuron coverage of a run and what is to be said of it; nothing if not measured."""
    found = document.coverage
    if found is None:
        return []
    seeds = _counted(found.seeds, "seed")
    sets = (
        (seeds, "seeds"),
        (f"{seeds} + {_counted(found.findings, 'finding')}", "with_findings"),
        (f"{seeds} + {_counted(found.others, 'other seed')}", "with_others"),
    )
    rows = [
        (f"{one.arm}, {one.neurons:,} neurons", name, *(f"{share:.1%}" for share in shares))
        for one in found.arms
        for name, key in sets
        if (shares := getattr(one, key)) is not None
    ]
    header = ("neuron coverage", "inputs", *(f"> {one:g}" for one in found.thresholds))
    nothing = (
        "No search ended in a finding: this is the coverage of all seeds, with nothing to hold it"
        " against."
    )
    notes = (f"{note[0].upper()}{note[1:]}." for note in found.notes)
    return [
        Table(title="", header=header, rows=rows, numbers_from=2),
        Sentences([*(() if found.findings else (nothing,)), *notes, NOT_MEANT]),
    ]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
