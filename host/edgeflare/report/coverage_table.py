"""The neuron coverage of a run as a table and sentences, the same in every report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from edgeflare.run.run_document import RunDocument

NOT_MEANT: Final = (
    "More coverage is not more deviations (Harel-Canada et al., FSE 2020): on two LeNets 60"
    " findings added to the coverage of their seeds what 60 other seeds did, and the coverage of"
    " one image told triggers from seeds with an AUC of .55 to .77 (.5 is chance), without the"
    " scores, which tell how near a boundary is, of .41 to .64."
)
"""What `benchmarks/coverage_of_triggers.py` measured."""


@dataclass(frozen=True, slots=True)
class CoverageTable:
    """Neuron coverage as it is shown.

    Attributes:
        header: names of the columns: arm, inputs, and a threshold each.
        rows: likewise, as text; none where no arm could be measured.
        lines: what there is to say beneath, a sentence each.

    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...]


def coverage_table(document: RunDocument) -> CoverageTable | None:
    """Return the neuron coverage of a run; None where it was not measured."""
    found = document.coverage
    if found is None:
        return None
    seeds = _counted(found.seeds, "seed")
    sets = (
        (seeds, "seeds"),
        (f"{seeds} + {_counted(found.findings, 'finding')}", "with_findings"),
        (f"{seeds} + {_counted(found.others, 'other seed')}", "with_others"),
    )
    rows = tuple(
        (f"{one.arm}, {one.neurons:,} neurons", name, *(f"{share:.1%}" for share in shares))
        for one in found.arms
        for name, key in sets
        if (shares := getattr(one, key)) is not None
    )
    nothing = (
        "No search ended in a finding: this is the coverage of all seeds, with nothing to hold it"
        " against."
    )
    return CoverageTable(
        ("neuron coverage", "inputs", *(f"> {one:g}" for one in found.thresholds)),
        rows,
        (
            *(() if found.findings else (nothing,)),
            *(f"{note[0].upper()}{note[1:]}." for note in found.notes),
            NOT_MEANT,
        ),
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
