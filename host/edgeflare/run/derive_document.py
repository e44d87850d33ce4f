"""The document of a run, derived from its journal and its inputs.

How often the compared arms deviate on inputs as they are: the seeds, and held-out ones. A search
shows what can be found, these figures how often it happens by itself; so they stand above all that
was mutated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import compress
from typing import Any

from edgeflare.core.domain import Domain
from edgeflare.core.goal import Find
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, EvaluatedQuery
from edgeflare.core.truths import Truths
from edgeflare.errors import InfrastructureError
from edgeflare.pages.facts import count_of
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.run.answer_rows import from_rows
from edgeflare.run.begin_or_resume import OTHER_HOSTS_KEY
from edgeflare.run.finding_outcomes import SortedFindings, sort_findings
from edgeflare.run.harm import count_harms, harm_or_why_not, right_by_arm
from edgeflare.run.journal_notes import noted_coverage, noted_without_reset
from edgeflare.run.journal_rows import AnswerRow, Role
from edgeflare.run.nearness import nearness_of, noted_measure
from edgeflare.run.replay_outcome import replay_outcome
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import (
    DeviationRate,
    Duplicates,
    Finding,
    ObservedHealth,
    ReplayOutcome,
    RunDocument,
    Unmutated,
    to_json,
)
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import HEALTH_KEY, HELD_OUT_KEY, RunJournal
from edgeflare.run.run_warnings import WARNINGS_KEY, undelegated
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.run.systematic.differences import systematic_differences
from edgeflare.run.systematic.figures import order_warnings
from edgeflare.run.totals import totals_of
from edgeflare.statistics.binomial import exact_interval


def write_document(directory: RunDirectory, journal: RunJournal) -> RunDocument:
    """Derive the document from the journal, write it into the run directory, and return it."""
    document = derive_document(directory, journal)
    write_atomically(directory.document, json_bytes(to_json(document)))
    return document


def derive_document(directory: RunDirectory, journal: RunJournal) -> RunDocument:
    """Derive the document of a run from its journal and its inputs."""
    noted = journal.about()
    header = RunHeader.from_json(noted)
    measure = noted_measure(noted)
    found = sort_findings(journal, header)
    duplicates = duplicates_of(directory, found.findings, header.domain)
    replay, health = noted.get("replay"), noted.get(HEALTH_KEY, {})
    # Of these, only the seeds of what was found are evaluated on all arms: no rate of any.
    figures = None if replay or SURVEY_KEY in noted else unmutated(journal, header)
    return RunDocument(
        edgeflare=header.version,
        stopped_by=noted.get("stopped_by", "killed"),
        pair=header.pair,
        devices=header.devices,
        host=header.host,
        ensemble=(*header.plan.ensemble, *header.plan.elsewhere),
        strategy=header.plan.strategy,
        find=header.plan.goal.find,
        rng_seed=header.plan.rng_seed,
        plan=header.plan,
        classes=header.classes,
        warnings=(
            *order_warnings(None if figures is None else figures.systematic),
            *noted.get("notes", []),
            *undelegated(header.devices),
            *noted.get(OTHER_HOSTS_KEY, []),
            *noted.get(WARNINGS_KEY, []),
            *_equal_arms(journal, header),
            *health.get("warnings", []),
        ),
        health=tuple(
            ObservedHealth(device=device.name, **seen)
            for device, seen in zip(header.devices, health.get("devices", []), strict=False)
        ),
        unmutated=figures,
        totals=totals_of(journal, header, found, duplicates),
        nearness=nearness_of(
            [*found.deviating_seeds, *found.findings], int(noted["seeds"]), measure
        ),
        deviating_seeds=tuple(found.deviating_seeds),
        findings=tuple(found.findings),
        flaky=tuple(found.flaky),
        unverified=tuple(found.unverified),
        replay=_replay(replay, journal, header, found) if replay else None,
        coverage=noted_coverage(noted),
    )


def _replay(
    noted: Mapping[str, Any], journal: RunJournal, header: RunHeader, found: SortedFindings
) -> ReplayOutcome:
    kinds = {seed_id: stored.kind for seed_id, stored in journal.triggers().items()}
    deviating = [*found.findings, *found.deviating_seeds, *found.flaky]
    seeds = seeds_that_deviate(journal, header)
    return replay_outcome(noted, kinds, deviating, found.mended, seeds)


def _equal_arms(journal: RunJournal, header: RunHeader) -> list[str]:
    """Return a line about arms whose raw outputs were equal on all seeds, if nothing was found.

    Arms that differ may still give equal outputs on seeds, where a saturated softmax hides what is
    below; so it is no matter as long as something is found.
    """
    if not journal.chains() or journal.triggers():
        return []
    rows = [rows[0] for rows in journal.answers("seed").values()]
    if len(rows) < int(journal.about()["seeds"]):
        return []
    first, second = header.plan.goal.compared
    if _equal(rows, first, second):
        return [
            f"nothing was found, and {first} and {second} gave equal outputs on all "
            f"{count_of(len(rows), 'seed')}: is it the same model on the same kernels?"
        ]
    if header.plan.goal.find is not Find.KERNEL and _equal(rows, Arm.ORIGINAL, Arm.TWIN):
        return [
            "nothing was found, and original and twin gave equal outputs on all"
            f" {count_of(len(rows), 'seed')}: if it is the same model, only kernels can differ,"
            " which --find kernel looks for"
        ]
    return []


def _equal(rows: Sequence[AnswerRow], first: Arm, second: Arm) -> bool:
    return all(row.raw(first) == row.raw(second) for row in rows)


def duplicates_of(
    directory: RunDirectory, findings: Sequence[Finding], domain: Domain
) -> Duplicates:
    """Return how much of what was found is the same, as `totals` has it.

    A finding whose trigger is gone or damaged is left out.

    Args:
        directory: where the inputs are.
        findings: entries of the document.
        domain: domain of their inputs, which says which are near.

    """
    if not findings:
        return Duplicates(triggers=0, distinct=0, exact=0, near=0, distinct_seeds=0)
    seeds: set[bytes] = set()

    def inputs() -> Iterator[Input]:
        for entry in findings:
            try:
                one = directory.load_input(entry.file)
                # Files of one run are equal if their inputs are, and read much faster.
                seeds.add(sha256(directory.read(entry.seed_file)).digest())
            except (InfrastructureError, OSError):
                continue
            yield one

    counts = count_duplicates(inputs(), domain)
    return Duplicates(**counts, distinct_seeds=len(seeds))


def count_duplicates(inputs: Iterable[Input], domain: Domain) -> dict[str, int]:
    """Compare each input with every other; one of them is held at a time.

    Returns:
        `triggers`, how many were compared; `distinct`, the different ones; `exact`, those that
        another one equals; `near`, those that another one is near to or equals.

    """
    copies, fingerprints = Counter[bytes](), []
    for input_ in inputs:
        copies[sha256(repr(input_.shape).encode() + input_.tobytes()).digest()] += 1
        fingerprints.append(domain.fingerprint(input_))
    return {
        "triggers": len(fingerprints),
        "distinct": len(copies),
        "exact": sum(times for times in copies.values() if times > 1),
        "near": domain.count_near(fingerprints),
    }


def unmutated(journal: RunJournal, header: RunHeader) -> Unmutated:
    """Return the figures of the seeds and, where there are some, of the held-out inputs."""
    held_out = journal.about().get(HELD_OUT_KEY)
    seeds = _evaluated(journal, header, "seed")
    labels = header.labels
    return Unmutated(
        seeds=_rate(header, seeds, header.truths),
        test=_rate(
            header,
            _evaluated(journal, header, "test"),
            Truths.from_json(header.arms[Arm.TWIN], held_out),
            held_out["path"],
        )
        if held_out
        else None,
        systematic=systematic_differences(
            header.reading,
            header.plan.goal.compared,
            list(seeds.values()),
            header.classes,
            None if labels is None else [labels[header.place(seed_id)] for seed_id in seeds],
        ),
        without_reset=noted_without_reset(journal.about()),
    )


def _evaluated(journal: RunJournal, header: RunHeader, role: Role) -> dict[int, EvaluatedQuery]:
    """Return what was answered first about each input of a role, by the id of its seed."""
    rows = [rows[0] for rows in journal.answers(role).values()]
    evaluated = from_rows(header.reading, rows)
    return {row.seed_id: query for row, query in zip(rows, evaluated, strict=True)}


def _rate(
    header: RunHeader,
    evaluated: Mapping[int, EvaluatedQuery],
    truths: Truths,
    path: str | None = None,
) -> DeviationRate:
    goal = header.plan.goal.unmutated
    outcomes = [query.outcome for query in evaluated.values()]
    known = [truths[seed_id] for seed_id in evaluated]
    deviating = [goal.met(outcome) is not None for outcome in outcomes]
    by_tie = [
        deviates and goal.tied_deviation(outcome)
        for deviates, outcome in zip(deviating, outcomes, strict=True)
    ]
    harms = [
        harm_or_why_not(goal, *arguments)
        for arguments in compress(zip(outcomes, known, strict=True), deviating)
    ]
    labelled, right = right_by_arm(outcomes, known)
    inputs, count = len(outcomes), sum(deviating)
    low, high = exact_interval(count, inputs) if inputs else (0.0, 1.0)
    return DeviationRate(
        path=path,
        inputs=inputs,
        deviating=count,
        by_tie=sum(by_tie),
        tied=sum(any(outcome[arm].tied for arm in goal.compared) for outcome in outcomes),
        rate=count / max(1, inputs),
        low=low,
        high=high,
        harm=count_harms(harms) if truths.given else None,
        harm_by_tie=count_harms(compress(harms, compress(by_tie, deviating)))
        if truths.given
        else None,
        labelled=labelled,
        right={arm.value: n for arm, n in right.items()} if labelled else None,
    )


def seeds_that_deviate(journal: RunJournal, header: RunHeader) -> list[int]:
    """Return the ids of the seeds that deviate when they were evaluated first.

    Args:
        journal: journal of the run.
        header: header of the run.

    """
    goal = header.plan.goal.unmutated
    evaluated = _evaluated(journal, header, "seed")
    return [seed_id for seed_id, query in evaluated.items() if goal.met(query.outcome)]
