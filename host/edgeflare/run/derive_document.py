"""The document of a run, derived from its journal and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.coverage_figures import noted_coverage
from edgeflare.run.duplicates import duplicates_of
from edgeflare.run.equal_arms import equal_arms
from edgeflare.run.journal import HEALTH_KEY, Journal
from edgeflare.run.json_file import json_bytes
from edgeflare.run.nearness import nearness_of, noted_measure
from edgeflare.run.other_hosts import OTHER_HOSTS_KEY
from edgeflare.run.replay_outcome import replay_outcome
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import (
    ObservedHealth,
    ReplayOutcome,
    RunDevice,
    RunDocument,
    to_json,
)
from edgeflare.run.run_header import RunHeader
from edgeflare.run.seed_warnings import WARNINGS_KEY
from edgeflare.run.seeds_that_deviate import seeds_that_deviate
from edgeflare.run.sorted_findings import SortedFindings, sort_findings
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.run.systematic.figures import order_warnings
from edgeflare.run.totals import totals_of
from edgeflare.run.undelegated_devices import undelegated
from edgeflare.run.unmutated import unmutated


def write_document(directory: RunDirectory, journal: Journal) -> RunDocument:
    """Derive the document from the journal, write it into the run directory, and return it."""
    document = derive_document(directory, journal)
    write_atomically(directory.document, json_bytes(to_json(document)))
    return document


def derive_document(directory: RunDirectory, journal: Journal) -> RunDocument:
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
        pair=dict(header.pair),
        devices=tuple(RunDevice(**device) for device in header.devices),
        host=dict(header.host),
        ensemble=(*header.plan.ensemble, *header.plan.elsewhere),
        strategy=header.plan.strategy,
        find=header.plan.goal.find.value,
        rng_seed=header.plan.rng_seed,
        plan=header.plan.to_json(),
        classes=header.classes,
        warnings=(
            *order_warnings(None if figures is None else figures.systematic),
            *noted.get("notes", []),
            *undelegated(header.devices),
            *noted.get(OTHER_HOSTS_KEY, []),
            *noted.get(WARNINGS_KEY, []),
            *equal_arms(journal, header),
            *health.get("warnings", []),
        ),
        health=tuple(
            ObservedHealth(device=device["name"], **seen)
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
    noted: Mapping[str, Any], journal: Journal, header: RunHeader, found: SortedFindings
) -> ReplayOutcome:
    kinds = {seed_id: stored.kind for seed_id, stored in journal.triggers().items()}
    deviating = [*found.findings, *found.deviating_seeds, *found.flaky]
    seeds = seeds_that_deviate(journal, header)
    return replay_outcome(noted, kinds, deviating, found.mended, seeds)
