"""The canonical result of a run: `run.json`, schema `edgeflare.run/v1`, derived from the journal.

`run.schema.json` beside this file describes it; docs/run.md says what each figure means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from statistics import fmean, median
from typing import Any

from edgeflare.core.arm import Arm
from edgeflare.core.cause import cause
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.core.strength import strength
from edgeflare.errors import UserError
from edgeflare.run.device_assignment import device_of
from edgeflare.run.document_check import check_document, read_document
from edgeflare.run.duplicates import duplicates_of
from edgeflare.run.equal_arms import equal_arms
from edgeflare.run.harm import count_harms, harm_of
from edgeflare.run.journal import Journal, damage_told
from edgeflare.run.journal_rows import REPETITIONS, ChainRow, RefinementRow, Role, TriggerRow
from edgeflare.run.nearness import image_size, judged, nearness_of, psnr
from edgeflare.run.replay_outcome import replay_part
from edgeflare.run.run_directory import DOCUMENT, RunDirectory, write_atomically
from edgeflare.run.run_header import RunHeader
from edgeflare.run.stored_answers import from_rows
from edgeflare.run.undelegated_devices import undelegated
from edgeflare.run.unmutated import unmutated

SCHEMA = "edgeflare.run/v1"

Document = dict[str, Any]
"""A run as plain JSON values; see `run.schema.json`."""


def write_document(directory: RunDirectory, journal: Journal) -> Document:
    """Derive the document from the journal, write it into the run directory, and return it."""
    document = build_document(directory, journal)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(directory.document, text.encode() + b"\n")
    return document


def load_document(directory: RunDirectory) -> Document:
    """Return a run's document; derived from the journal where a run was cut off before its end.

    Raises:
        UserError: there is no run, or what is there is damaged; names the file, and the place.

    """
    if directory.document.is_file():
        try:
            return read_document(directory.inside(DOCUMENT))
        except UserError as error:
            raise UserError(f"{error}{_remedy(directory)}") from None
    with closing(Journal.open(directory.journal)) as journal, damage_told(directory.journal):
        return check_document(build_document(directory, journal), directory.journal)


def _remedy(directory: RunDirectory) -> str:
    """Say what helps where a document is damaged and its journal is there."""
    if not directory.journal.is_file():
        return ""
    return f"; remove it, and it is derived anew from {directory.journal.name}"


def build_document(directory: RunDirectory, journal: Journal) -> Document:
    """Derive the document of a run from its journal and its images."""
    about_json = journal.about()
    about = RunHeader.from_json(about_json)
    chains = journal.chains()
    replay = about_json.get("replay")
    health = about_json.get("health", {})
    findings: dict[int, Document] = {}
    deviating: dict[int, Document] = {}
    flaky: list[Document] = []
    unverified: list[Document] = []
    mended: list[Document] = []
    verifications = journal.answers("verify")
    refinements = journal.refinements()
    triggers = journal.triggers()
    values = image_size(directory, triggers.values())
    for seed_id, stored in triggers.items():
        chain = chains.get(seed_id)
        rows = verifications.get(seed_id, [])
        outcomes = [one.outcome for one in from_rows(about.reading, rows)]
        # Of a replay it is to be steady here; of which kind it was elsewhere does not matter.
        here = about.plan.goal.met(outcomes[0]) if replay and outcomes else None
        trigger = replace(stored, kind=here or stored.kind)
        entry = _entry(about, trigger, chain, refinements.get(seed_id), outcomes)
        entry["psnr"] = psnr(trigger.l2, values) if values and trigger.l2 else None
        entry |= judged(entry, about.plan)
        if len(rows) < REPETITIONS:
            unverified.append(entry)
        elif replay and not any(map(about.plan.goal.met, outcomes)):
            mended.append(entry)
        elif not entry["verified"]:
            flaky.append(entry)
        elif chain is None:
            deviating[seed_id] = entry
        else:
            findings[seed_id] = entry
    document = {
        "schema": SCHEMA,
        "edgeflare": about.version,
        "stopped_by": about_json.get("stopped_by", "killed"),
        "pair": dict(about.pair),
        "devices": [dict(device) for device in about.devices],
        **({"host": dict(about.host)} if about.host else {}),
        "ensemble": [*about.plan.ensemble, *about.plan.elsewhere],
        "strategy": about.plan.strategy,
        "find": about.plan.goal.find.value,
        "rng_seed": about.plan.rng_seed,
        "plan": about.plan.to_json(),
        "classes": list(about.classes),
        "warnings": [
            *about_json.get("notes", []),
            *undelegated(about.devices),
            *about_json.get("warnings", []),
            *equal_arms(journal, about),
            *health.get("warnings", []),
        ],
        "health": [
            {"device": device["name"], **seen}
            for device, seen in zip(about.devices, health.get("devices", []), strict=False)
        ],
        **({} if replay else {"unmutated": unmutated(journal, about)}),
        "totals": {
            **_totals(journal, about, chains, findings, deviating, flaky),
            **_harms(about, findings, deviating),
            "duplicates": duplicates_of(directory, list(findings.values())),
        },
        "nearness": nearness_of(
            [*deviating.values(), *findings.values()], int(about_json["seeds"])
        ),
        "deviating_seeds": list(deviating.values()),
        "findings": list(findings.values()),
        "flaky": flaky,
        "unverified": unverified,
    }
    if replay:
        deviating_now = [*findings.values(), *deviating.values(), *flaky]
        seeds = _seeds_that_deviate(journal, about)
        kinds = {seed_id: stored.kind for seed_id, stored in triggers.items()}
        document["replay"] = replay_part(replay, kinds, deviating_now, mended, seeds)
    return document


def _seeds_that_deviate(journal: Journal, about: RunHeader) -> list[int]:
    rows = [rows[0] for rows in journal.answers("seed").values()]
    return [
        row.seed_id
        for row, one in zip(rows, from_rows(about.reading, rows), strict=True)
        if about.plan.goal.met(one.outcome)
    ]


def _entry(
    about: RunHeader,
    trigger: TriggerRow,
    chain: ChainRow | None,
    refinement: RefinementRow | None,
    outcomes: Sequence[Outcome],
) -> Document:
    """Return a finding, or a seed that deviates itself, as the document has it."""
    outcome = outcomes[0] if outcomes else None
    return {
        "seed_id": trigger.seed_id,
        "seed_name": about.seed_name(trigger.seed_id),
        "seed_label": about.seed_label(trigger.seed_id),
        "kind": trigger.kind,
        "device": about.devices[device_of(trigger.seed_id, len(about.devices))]["name"],
        "queries": 0 if chain is None else chain.queries,
        "device_queries": 0 if chain is None else chain.device_queries,
        "seconds": 0.0 if chain is None else chain.seconds,
        **_verdict(about.plan.goal, outcome),
        "harm": harm_of(about.plan.goal, outcome, about.seed_label(trigger.seed_id)),
        "distortion": _distortion(trigger),
        "refined": None if refinement is None else _refined(refinement),
        "operators": list(trigger.operators),
        "image": trigger.image,
        "sha256": trigger.sha256,
        "seed_image": trigger.seed_image,
        "verified": _reproduced(about.plan.goal, trigger.kind, outcomes),
        "seen": [_labels(outcome) for outcome in outcomes],
    }


def _harms(
    about: RunHeader, findings: Mapping[int, Document], deviating: Mapping[int, Document]
) -> Document:
    """Return how many findings and deviating seeds are harmful; nothing without labels."""
    if about.labels is None:
        return {}
    lists = {"deviating_seeds": deviating, "findings": findings}
    return {
        "harm": {
            name: count_harms(entry["harm"] for entry in entries.values())
            for name, entries in lists.items()
        }
    }


def _distortion(row: TriggerRow | RefinementRow) -> Document:
    return {"l2": row.l2, "linf": row.linf, "mean_abs": row.mean_abs, "changed": row.changed}


def _refined(row: RefinementRow) -> Document:
    """Return what a finding was before it was refined, and what that cost."""
    return {
        "queries": row.queries,
        "device_queries": row.device_queries,
        "strength_before": row.strength,
        "distortion_before": _distortion(row),
        "image_before": row.image,
    }


def _verdict(goal: Goal, outcome: Outcome | None) -> Document:
    """Return what the labels and probabilities of the three arms say."""
    if outcome is None:
        return {
            "labels": {},
            "tied": {},
            "probabilities": {},
            "cause": None,
            "device_sides_with_original": None,
            "strength": None,
        }
    first, second = (outcome[arm] for arm in goal.compared)
    original = outcome.answers.get(Arm.ORIGINAL)
    found = cause(outcome, goal.find)
    sides = found == "kernel" and original is not None
    return {
        "labels": _labels(outcome),
        "tied": {arm.value: answer.tied for arm, answer in outcome.answers.items()},
        "probabilities": {
            arm.value: [round(p, 9) for p in answer.probabilities.tolist()]
            for arm, answer in outcome.answers.items()
        },
        "cause": found,
        "device_sides_with_original": (
            original.label == outcome[Arm.DEVICE].label if sides and original else None
        ),
        "strength": strength(first, second),
    }


def _labels(outcome: Outcome) -> dict[str, int | None]:
    return {arm.value: answer.label for arm, answer in outcome.answers.items()}


def _reproduced(goal: Goal, kind: str, outcomes: Sequence[Outcome]) -> bool:
    """Whether a finding showed in every repetition, of the same kind and with the same labels."""
    return len(outcomes) >= REPETITIONS and all(
        goal.met(outcome) == kind and _labels(outcome) == _labels(outcomes[0])
        for outcome in outcomes
    )


def _totals(
    journal: Journal,
    about: RunHeader,
    chains: Mapping[int, ChainRow],
    findings: Mapping[int, Document],
    deviating: Mapping[int, Document],
    flaky: Sequence[Document],
) -> Document:
    spent = list(chains.values())
    found = [chains[seed_id] for seed_id in findings]
    roles: tuple[Role, ...] = ("seed", "test", "verify", "canary")
    overhead = [row for role in roles for rows in journal.answers(role).values() for row in rows]
    seeds = int(journal.about()["seeds"])
    times = journal.times()
    refined = list(journal.refinements().values())
    costs: list[ChainRow | RefinementRow] = [*spent, *refined]
    open_steps = [row for rows in journal.answers("step").values() for row in rows]
    under_way = [row for rows in journal.answers("refine").values() for row in rows]
    unended = [*overhead, *open_steps, *under_way]
    return {
        "seeds": seeds,
        "deviating_seeds": len(deviating),
        "searched": len(chains),
        "findings": len(findings),
        "success_rate": len(findings) / max(1, seeds - len(deviating)),
        "mean_queries": fmean(row.queries for row in found) if found else None,
        "median_queries": median(row.queries for row in found) if found else None,
        "queries": sum(row.queries for row in spent) + sum(not row.again for row in open_steps),
        "mean_device_queries": fmean(row.device_queries for row in found) if found else None,
        "device_queries": sum(row.device_queries for row in spent)
        + sum(row.device is not None for row in open_steps),
        "overhead_queries": len(overhead)
        + sum(row.queries for row in refined)
        + sum(not row.again for row in under_way),
        "overhead_device_queries": sum(row.device is not None for row in (*overhead, *under_way))
        + sum(row.device_queries for row in refined),
        "host_evaluations": {
            "original": sum(row.original_evaluations for row in costs)
            + sum(row.original is not None for row in unended),
            f"twin-{about.plan.ensemble[0]}": sum(row.twin_evaluations for row in costs)
            + sum(row.twin is not None for row in unended),
            **{
                f"twin-{member}": sum(row.member_evaluations for row in costs)
                + sum(row.members is not None for row in unended)
                for member in about.reading.members
            },
        },
        "setup_seconds": times.setup,
        "wall_seconds": times.wall,
        "refine_seconds": times.refine,
        "verify_seconds": times.verify,
        "mean_seconds": fmean(row.seconds for row in found) if found else None,
        "device_busy_seconds": times.device_busy,
        "ties": sum(row.ties for row in spent),
        "flaky": len(flaky),
    }
