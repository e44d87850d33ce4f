"""The seeds themselves: evaluated on every arm before any search, since some already deviate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.campaign.trigger_files import store_trigger
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.outcome import Outcome
from edgeflare.core.query import Query
from edgeflare.core.trigger import Trigger
from edgeflare.models.decode import Decoded, Decoder
from edgeflare.models.evaluator import RawBatch
from edgeflare.models.sanity import sanity_warnings
from edgeflare.run.journal_rows import AnswerRow
from edgeflare.run.stored_answers import from_rows, to_row

FOLDER = "deviating_seeds"


def screen(setting: CampaignContext) -> dict[int, Outcome]:
    """Evaluate the seeds, and record those that deviate.

    Returns:
        The outcome of each seed, by seed id; not of all if the user stopped it.

    """
    known = _known(setting)
    missing = [seed_id for seed_id in range(len(setting.images)) if seed_id not in known]
    outcomes = {seed_id: one.outcome for seed_id, one in known.items()}
    pipeline: Pipeline[list[int]] = setting.pipeline()
    for landed in pipeline.stream(_batches(setting, missing)):
        _record(setting, landed.ticket, landed.evaluated)
        for seed_id, one in zip(landed.ticket, landed.evaluated, strict=True):
            outcomes[seed_id] = one.outcome
        setting.observer.screened(len(outcomes), len(setting.images))
    return outcomes


def warn(setting: CampaignContext) -> None:
    """Note what looks wrong in the answers of the host's models on the seeds, and show it."""
    decoders = setting.panel.reading.decoders
    rows = [rows[0] for rows in setting.journal.answers("seed").values()]
    if not rows:
        return
    decoded = {
        arm: _decode(decoders[arm], arm, rows)
        for arm in (Arm.ORIGINAL, Arm.TWIN)
        if arm in decoders
    }
    lines = sanity_warnings(decoded.get(Arm.ORIGINAL), decoded[Arm.TWIN], setting.labels)
    setting.journal.note("warnings", lines)
    for line in lines:
        setting.observer.warned(line)


def _decode(decoder: Decoder, arm: Arm, rows: Sequence[AnswerRow]) -> Decoded:
    outputs = np.frombuffer(b"".join(row.raw(arm) or b"" for row in rows), decoder.tensor.dtype)
    failures = {
        i: row.failures[arm.value] for i, row in enumerate(rows) if arm.value in row.failures
    }
    return decoder.decode(RawBatch(outputs.reshape(len(rows), -1), failures))


def _known(setting: CampaignContext) -> Mapping[int, EvaluatedQuery]:
    rows: list[AnswerRow] = [rows[0] for rows in setting.journal.answers("seed").values()]
    return {
        row.seed_id: one
        for row, one in zip(rows, from_rows(setting.panel.reading, rows), strict=True)
    }


def _batches(
    setting: CampaignContext, seed_ids: Sequence[int]
) -> Iterator[tuple[list[int], list[Query], list[int]]]:
    size = min(setting.batch_size(0.0), 16)  # nothing is known of the device's speed yet
    for begin in range(0, len(seed_ids), size):
        if setting.stopped():
            return
        part = list(seed_ids[begin : begin + size])
        panel = setting.panel
        yield part, [Query(setting.images[i], panel.arms, panel.members) for i in part], part


def _record(
    setting: CampaignContext, seed_ids: Sequence[int], evaluated: Sequence[EvaluatedQuery]
) -> None:
    with setting.journal.transaction():
        for seed_id, one in zip(seed_ids, evaluated, strict=True):
            image = setting.images[seed_id]
            setting.journal.write_answers([to_row("seed", seed_id, 0, image, one)])
            kind = setting.plan.goal.met(one.outcome)
            if kind is not None:
                store_trigger(setting, FOLDER, seed_id, Trigger(image, kind, one.outcome, ()))
