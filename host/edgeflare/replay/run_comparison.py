"""Runs side by side: how often and how strongly they deviate, and on which inputs all do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

from edgeflare.errors import InfrastructureError, UserError
from edgeflare.report.entry_words import sort
from edgeflare.report.run_figures import count_kinds
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import RunDevice, RunDocument

SCHEMA = "edgeflare.compare/v1"


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of those that are compared; means and medians are None where there are none.

    Attributes:
        run: where it lies.
        pair: name of the pair.
        devices: names, with runtime and kernels.
        compressed: path of its compressed model.
        strategy: name of the strategy, or "replay".
        find: what it looked for.
        seeds: seeds that it had.
        deviating_seeds: those that deviate themselves.
        findings: verified findings.
        success_rate: as in its document.
        mean_queries: queries for a finding.
        mean_device_queries: device queries for a finding.
        median_strength: strength of a finding.
        median_l2: distance of a triggering input from its seed, in levels.
        harm: findings by who was right, where their seeds have labels.
        nearness: share of the seeds that have a deviating input within a distance, by that
            distance in dB; empty for a run of before it was noted.
        area: area under the curve of that share; see `report.nearness`.
        causes: findings by cause, or by kind where they are worse than deviations.
        kinds: findings by the kind of their deviation, where the task tells kinds apart.
        unique: stored inputs that no other of the runs found.

    """

    run: str
    pair: str
    devices: tuple[str, ...]
    compressed: str
    strategy: str
    find: str
    seeds: int
    deviating_seeds: int
    findings: int
    success_rate: float
    mean_queries: float | None
    mean_device_queries: float | None
    median_strength: float | None
    median_l2: float | None
    harm: Mapping[str, int]
    nearness: Mapping[str, float]
    area: float | None
    causes: Mapping[str, int]
    kinds: Mapping[str, int]
    unique: int


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Runs side by side.

    Attributes:
        columns: a run each.
        shared_inputs: stored inputs, by sha256, that deviate in every run.
        shared_seeds: ids of seeds from which every run found something, or that deviate in every
            run themselves; an id counts only if it is of one and the same image in all of them.

    """

    columns: tuple[ComparedRun, ...]
    shared_inputs: tuple[str, ...]
    shared_seeds: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return this as plain JSON values; a run without kinds of deviations has no such key."""
        plain = asdict(self)
        for column in plain["columns"]:
            if not column["kinds"]:
                del column["kinds"]
        return {"schema": SCHEMA, **plain}


def compare(documents: Mapping[str, RunDocument]) -> RunComparison:
    """Set runs side by side.

    Args:
        documents: documents of at least two runs, by where they lie.

    Raises:
        UserError: there are fewer, or a stored image is gone or damaged.

    """
    if len(documents) < 2:
        raise UserError("one run cannot be compared: name two run directories or more")
    inputs = {
        run: {entry.sha256 for entry in compared.deviations} for run, compared in documents.items()
    }
    seeds = [
        {entry.seed_id: (run, entry.seed_file) for entry in compared.deviations}
        for run, compared in documents.items()
    ]
    ids = set.intersection(*map(set, seeds))
    columns = []
    for run, document in documents.items():
        others = set().union(*(found for other, found in inputs.items() if other != run))
        columns.append(_column(run, document, len(inputs[run] - others)))
    return RunComparison(
        tuple(columns),
        tuple(sorted(set.intersection(*inputs.values()))),
        tuple(i for i in sorted(ids) if len({_content(*seed[i]) for seed in seeds}) == 1),
    )


def _content(run: str, name: str) -> bytes:
    """Return what tells the values of a stored input from those of any other."""
    try:
        one = RunDirectory(Path(run)).load_input(name)
    except InfrastructureError as error:
        raise UserError(str(error)) from None
    return sha256(str(one.shape).encode() + one.tobytes()).digest()


def _column(run: str, document: RunDocument, unique: int) -> ComparedRun:
    totals, findings = document.totals, document.findings
    near, harm = document.nearness, totals.harm
    replayed = document.replay is not None  # which takes no queries: nothing is searched
    causes: dict[str, int] = {}
    for entry in findings:
        causes[sort(entry)] = causes.get(sort(entry), 0) + 1
    return ComparedRun(
        run=run,
        pair=document.pair.name,
        devices=tuple(map(_device, document.devices)),
        compressed=document.pair.compressed,
        strategy=document.strategy,
        find=document.find,
        seeds=totals.seeds,
        deviating_seeds=totals.deviating_seeds,
        findings=totals.findings,
        success_rate=totals.success_rate,
        mean_queries=None if replayed else totals.mean_queries,
        mean_device_queries=None if replayed else totals.mean_device_queries,
        median_strength=_median([entry.strength for entry in findings]),
        median_l2=_median([entry.distortion.l2 for entry in findings]),
        harm={} if harm is None else harm.findings or {},
        nearness={f"{share.at_least_db:g}": share.share for share in near.db} if near else {},
        area=near.area if near else None,
        causes=causes,
        kinds=count_kinds(findings),
        unique=unique,
    )


def _device(device: RunDevice) -> str:
    known = device.provenance
    return f"{device.name} ({known.runtime} {known.runtime_version}, {known.kernels})"


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
