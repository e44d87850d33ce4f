"""Inputs evaluated as they are, on every arm: seeds before any search, held-out inputs, findings.

Some seeds already deviate, which their screening tells. Held-out inputs (`--test`) are never
searched from. Findings are evaluated several times each, which verifies that they show again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare.campaign.campaign_context import CampaignContext, store_trigger
from edgeflare.campaign.non_finite_outputs import non_finite_lines, non_finite_rows
from edgeflare.campaign.pipeline import Pipeline
from edgeflare.campaign.screening_answers import GivenScreening
from edgeflare.core.goal import Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import EvaluatedQuery, Outcome, Query
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import Decoder
from edgeflare.core.truths import KeptTargets, require_truths
from edgeflare.errors import UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.pages.facts import count_of
from edgeflare.run.answer_rows import from_rows, to_row
from edgeflare.run.journal_notes import WITHOUT_RESET_KEY
from edgeflare.run.journal_rows import REPETITIONS, Role
from edgeflare.run.run_document import to_json
from edgeflare.run.run_journal import HELD_OUT_KEY, RunJournal
from edgeflare.run.run_warnings import WARNINGS_KEY, seed_warnings

_FIRST_BATCH = 16
"""The most inputs in a batch before the speed of the devices is known."""

_Inputs = list[tuple[int, int, Input]]
"""Seed ids, repetitions and inputs of a batch."""


def evaluate_inputs(
    context: CampaignContext,
    role: Role,
    rounds: Iterable[Sequence[tuple[int, int]]],
    load: Callable[[int], Input],
    *,
    members: tuple[str, ...] = (),
    record: Callable[[int, EvaluatedQuery], None] = lambda _seed_id, _evaluated: None,
    end_batch: Callable[[], None] = lambda: None,
) -> Iterator[list[tuple[int, EvaluatedQuery]]]:
    """Evaluate inputs until all are, or the campaign is stopped; yield each batch once it is kept.

    Args:
        context: the campaign.
        role: the role under which the journal keeps the answers.
        rounds: seed id and repetition of each input; no batch holds inputs of two rounds.
        load: returns the input of a seed id.
        members: further members of the twin's ensemble to ask.
        record: writes more about an input, given its seed id, in the transaction of its answers.
        end_batch: writes more about a batch, at the end of that transaction.

    """
    size = min(context.batch_size(0.0), _FIRST_BATCH)
    arms, reading = context.panel.arms, context.panel.reading

    def batches() -> Iterator[tuple[_Inputs, list[Query], list[int]]]:
        for left in rounds:
            at = 0
            while at < len(left):
                if context.stopped():
                    return
                inputs = [(seed_id, n, load(seed_id)) for seed_id, n in left[at : at + size]]
                queries = [Query(input_, arms, members) for _, _, input_ in inputs]
                at += len(inputs)
                yield inputs, queries, [seed_id for seed_id, _, _ in inputs]

    pipeline: Pipeline[_Inputs] = context.pipeline()
    for batch in pipeline.stream(batches()):
        size = context.batch_size(batch.mean_seconds)
        answered = list(zip(batch.ticket, batch.evaluated, strict=True))
        with context.journal.transaction():
            context.journal.write_answers(
                to_row(reading, role, seed_id, n, asked, query)
                for (seed_id, n, asked), query in answered
            )
            for (seed_id, _, _), query in answered:
                record(seed_id, query)
            end_batch()
        yield [(seed_id, query) for (seed_id, _, _), query in answered]


def verify(context: CampaignContext) -> bool:
    """Verify what has not been verified yet; return False if it was stopped before the end."""
    done = {seed_id: len(rows) for seed_id, rows in context.journal.answers("verify").items()}
    paths = {seed_id: row.image for seed_id, row in context.journal.triggers().items()}
    rounds = [
        [(seed_id, n) for seed_id in paths if n >= done.get(seed_id, 0)] for n in range(REPETITIONS)
    ]
    left = sum(map(len, rounds))
    verified = 0

    def load(seed_id: int) -> Input:
        return context.directory.load_input(paths[seed_id])

    def add_time() -> None:
        context.stopwatch.lap("verify")

    for batch in evaluate_inputs(context, "verify", rounds, load, end_batch=add_time):
        verified += len(batch)
        context.observer.verified(verified, left)
    return verified == left


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Inputs that are only evaluated.

    Attributes:
        path: where they were loaded from.
        inputs: as seeds are.

    """

    path: Path
    inputs: Seeds

    @classmethod
    def load(
        cls, path: Path, models: ModelInputs, decoder: Decoder, classes: Sequence[str] = ()
    ) -> HeldOut:
        """Load inputs as seeds are given.

        Args:
            path: path of an `.npz` file, or a folder.
            models: what the pair's models take.
            decoder: decoder of the pair, which reads targets.
            classes: the pair's names of the decisions, by which sub-folders are labels.

        Raises:
            UserError: there are none, or they do not fit; or the models take something beside them
                that belongs to each seed.

        """
        try:
            inputs = models.load(path, classes=classes)
            if inputs.fixed:
                raise UserError(
                    f"{', '.join(inputs.fixed)} is left by the search as each seed has it, which"
                    " inputs that are no seeds cannot have: leave out --test"
                )
            return cls(path, require_truths(decoder, inputs, path))
        except UserError as error:
            raise UserError(f"--test: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """Return what the journal is told of them, as plain JSON values."""
        labels, targets = self.inputs.labels, KeptTargets.of(self.inputs.targets)
        return {
            "path": os.path.abspath(self.path),
            "inputs": len(self.inputs),
            "sha256": self.inputs.sha256,
            "labels": None if labels is None else labels.tolist(),
            "targets": None if targets is None else targets.to_json(),
        }


def note_held_out(journal: RunJournal, held_out: HeldOut | None, *, resumed: bool) -> None:
    """Note in the journal of a run which inputs it evaluates beside its seeds.

    Raises:
        UserError: the run is resumed, and was begun with others.

    """
    noted = None if held_out is None else held_out.to_json()
    if not resumed:
        journal.note(HELD_OUT_KEY, noted)
        return
    begun = journal.about().get(HELD_OUT_KEY)
    before, now = (
        known and (known["sha256"], known["labels"], known["targets"]) for known in (begun, noted)
    )
    if before != now:
        how = f"with --test {begun['path']}" if begun else "without --test"
        raise UserError(
            f"{journal.path.parent} was begun {how}, and with other inputs than now: repeat the"
            " command that began it, with --resume"
        )


def evaluate_held_out(context: CampaignContext) -> bool:
    """Evaluate the held-out inputs that were not evaluated yet; return False if it was stopped.

    They belong to no seed, so a search of some seeds leaves them to the run that has all.
    """
    if context.held_out is None or context.plan.seed_ids is not None:
        return True
    inputs = context.held_out.inputs
    done = context.journal.answers("test").keys()
    missing = [(i, 0) for i in range(len(inputs)) if i not in done]
    evaluated = len(inputs) - len(missing)
    for batch in evaluate_inputs(context, "test", [missing], lambda i: inputs[i]):
        evaluated += len(batch)
        context.observer.tested(evaluated, len(inputs))
    return evaluated == len(inputs)


FOLDER = "deviating_seeds"


def screen(context: CampaignContext) -> dict[int, Outcome]:
    """Evaluate the seeds that are searched, and record those that deviate.

    Once all are, what looks wrong in the answers is noted. Where a screening is given, its answers
    are taken, and nothing is asked.

    Returns:
        The outcome of each seed, by seed id; not of all if the user stopped it.

    """
    if WITHOUT_RESET_KEY not in context.journal.about():
        found = context.without_reset()
        context.journal.note(WITHOUT_RESET_KEY, None if found is None else to_json(found))
    answered = [rows[0] for rows in context.journal.answers("seed").values()]
    queries = from_rows(context.panel.reading, answered)
    evaluated = {row.seed_id: query for row, query in zip(answered, queries, strict=True)}
    seed_ids = context.seed_ids
    missing = [seed_id for seed_id in seed_ids if seed_id not in evaluated]
    if context.screening is not None:
        evaluated |= _take(context, context.screening, missing)
        missing = []
    for batch in evaluate_inputs(
        context,
        "seed",
        [[(seed_id, 0) for seed_id in missing]],
        context.seeds.input_of,
        members=context.panel.members,
        record=lambda seed_id, query: _record(context, seed_id, query.outcome),
    ):
        evaluated.update(batch)
        context.observer.screened(len(evaluated), len(seed_ids))
    if len(evaluated) == len(seed_ids):
        _warn(context, evaluated)
    return {seed_id: query.outcome for seed_id, query in evaluated.items()}


def _take(
    context: CampaignContext, given: GivenScreening, seed_ids: Sequence[int]
) -> dict[int, EvaluatedQuery]:
    """Record what a screening elsewhere has of some seeds, and return it."""
    rows = [given.rows[seed_id] for seed_id in seed_ids]
    with context.journal.transaction():
        context.journal.write_answers(rows)
        for seed_id in seed_ids:
            _record(context, seed_id, given.outcomes[seed_id])
    return dict(zip(seed_ids, from_rows(context.panel.reading, rows), strict=True))


def _record(context: CampaignContext, seed_id: int, outcome: Outcome) -> None:
    """Store a seed if it deviates."""
    kind = context.plan.goal.unmutated.met(outcome)
    if kind is not None:
        trigger = Trigger(context.seeds.input_of(seed_id), kind, outcome, ())
        store_trigger(context, FOLDER, seed_id, trigger)


def _warn(context: CampaignContext, evaluated: Mapping[int, EvaluatedQuery]) -> None:
    """Note what looks wrong in the answers of the host's models on the seeds, and show it."""
    known = {seed_id: query.outcome for seed_id, query in evaluated.items()}
    if context.screening is not None:
        known = dict(context.screening.outcomes)
    if not known:
        return
    lines = [
        *non_finite_lines(
            non_finite_rows(context.panel.reading, list(evaluated.values())),
            context.panel.arms,
            count_of(len(evaluated), "seed"),
        ),
        *seed_warnings(context.task, [*known.values()], context.seeds.labels_of(known)),
    ]
    context.journal.note(WARNINGS_KEY, lines)
    for line in lines:
        context.observer.warned(line)
