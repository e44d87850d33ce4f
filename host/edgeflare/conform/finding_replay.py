"""Findings of a conformance run, tried again on other kernels, and what still fails, kept."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

import edgeflare_protos
from edgeflare.conform.conformance_arms import OpenedConformance
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.execution.kernel_arm import KernelArm, ModelAnswer, PosedModel, Turns
from edgeflare.conform.graphs.graph_turns import taking_turns
from edgeflare.conform.graphs.graph_verdict import TURNS, invocation_told, judge_graphs
from edgeflare.conform.graphs.turns_verdict import answers_in_turn
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.conform.record.conform_finding import kept_error
from edgeflare.conform.record.conform_header import (
    ConformHeader,
    ConformRequest,
    specification_digest,
)
from edgeflare.conform.record.finding_files import StoredModel, store_finding, stored_model
from edgeflare.conform.rounds.conformance import Conformance, conform_outcome
from edgeflare.conform.rounds.draft_verdict import JudgedDraft, judge_again
from edgeflare.conform.specification.exact_answer import ExactAnswer
from edgeflare.conform.verdict.exact_rows import exact_rows
from edgeflare.conform.verdict.kernel_judgement import BESIDE_OTHERS, KernelJudgement
from edgeflare.errors import UserError
from edgeflare.models.run_host import describe_host
from edgeflare.pages.facts import count_of
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes
from edgeflare.run.run_directory import CONFORM_DOCUMENT, RunDirectory

RetryOutcome = Literal["still", "otherwise", "refused", "mended"]
"""What became of a finding: it fails as it did; it fails in another way; the device refuses its
model; it does not fail."""

_COPIES: Final = 8
"""Copies run in one file of a model that fails beside others: it may be the only finding."""


@dataclass(frozen=True, slots=True)
class RetriedFinding:
    """A finding that was tried again.

    Attributes:
        stored: the finding's model.
        judged: what was said of it now.
        answers: each arm's answer to the whole model, by the arm's name.

    """

    stored: StoredModel
    judged: JudgedDraft
    answers: Mapping[str, ModelAnswer]

    @property
    def finding(self) -> FoundFault:
        """What it was."""
        return self.stored.finding

    @property
    def judgement(self) -> KernelJudgement:
        """What is said of the whole model; of one that gives up half-way, of that operator."""
        if self.judged.whole is not None:
            return self.judged.whole
        return [node for node in self.judged.nodes if node is not None][-1]

    @property
    def outcome(self) -> RetryOutcome:
        """What became of it."""
        now = self.judgement
        if now.verdict == "refused":
            return "refused"
        was = (self.finding.verdict, self.finding.symptom)
        if (now.verdict, now.symptom) == was:
            return "still"
        # That the host's kernels are wrong says that this device, on which it is tried, is right.
        return "otherwise" if now.is_finding and now.verdict != "host" else "mended"

    @property
    def counts(self) -> bool:
        """Whether it counts for the exit code."""
        fails = self.outcome in ("still", "otherwise")
        return fails and self.judgement.counted and self.finding.accepted is None


def retried_findings(
    several: Sequence[StoredModel], arms: Sequence[KernelArm]
) -> list[RetriedFinding]:
    """Try findings again, in their order.

    Args:
        several: their models.
        arms: the device first, then the host's kernel sets.

    """
    graphs = [stored for stored in several if stored.is_graph]
    alone = [stored for stored in several if not stored.is_graph]
    tried = [*_of_one_operator(alone, arms), *(_of_graph(stored, arms) for stored in graphs)]
    found = {id(retried.stored): retried for retried in tried}
    return [found[id(stored)] for stored in several]


def _of_one_operator(
    several: Sequence[StoredModel], arms: Sequence[KernelArm]
) -> list[RetriedFinding]:
    beside = [stored for stored in several if stored.finding.symptom in BESIDE_OTHERS]
    models = [*several, *beside * _COPIES]
    nodes = [stored.draft.nodes[0] for stored in models]
    posed = [
        PosedModel(stored.model.graph, stored.files.operands, stored.finding.smallest.rows)
        for stored in models
    ]
    again = judge_again(nodes, posed, arms)
    return [
        RetriedFinding(stored, JudgedDraft(stored.draft, (judgement,)), answers)
        for stored, (judgement, answers) in zip(several, again, strict=False)
    ]


def _of_graph(one: StoredModel, arms: Sequence[KernelArm]) -> RetriedFinding:
    """Try a graph in a file of its own: all of it, and its operators one by one."""
    (judged,) = judge_graphs([one.whole], arms)
    said = judged.judgement
    if said is None:
        refused = KernelJudgement("refused", "refused", detail="an operator gives no answer alone")
        wrong = KernelJudgement("right", detail="an operator is wrong alone")
        said = wrong if all(judged.taken) else refused
    known = judged.answers or {}
    others = [arm for arm in arms if arm.name not in known]
    turns, pair = _in_turn(one)
    if turns is None or not judged.fails:
        by_arm = {arm.name: arm.run([one.whole])[0] for arm in others}
    else:
        by_arm = answers_in_turn(pair, others, turns)
    nodes = (None,) * len(one.draft.nodes)
    return RetriedFinding(one, JudgedDraft(one.draft, nodes, said), {**by_arm, **known})


def _in_turn(one: StoredModel) -> tuple[Turns | None, PosedModel]:
    """Return how a finding takes turns, None for not at all, and its model with the other."""
    turns = TURNS.get(invocation_told(one.finding.arrangement))
    pair = None if turns is None else taking_turns(one.whole, turns)
    return (None, one.whole) if pair is None else (turns, pair)


def stored_models(directory: RunDirectory, document: ConformDocument) -> list[StoredModel]:
    """Return the models of all findings of a run.

    Raises:
        UserError: it found nothing, or a file is gone or damaged.

    """
    if not document.findings:
        raise UserError(f"{directory.path} found nothing: there is nothing to try again")
    return [stored_model(directory, finding) for finding in document.findings]


def replay_findings(
    document: ConformDocument,
    models: Sequence[StoredModel],
    opened: OpenedConformance,
    out: RunDirectory,
) -> list[RetriedFinding]:
    """Try findings again, and write those that fail as a run of their own.

    Args:
        document: document of the run that found them.
        models: as `stored_models` returns them.
        opened: what runs them.
        out: an empty run directory.

    Raises:
        InfrastructureError: the device does not come back.

    """
    begin = time.monotonic()
    found = retried_findings(models, opened.arms)
    cells = {node.cell for stored in models for node in stored.draft.nodes}
    asked = document.plan
    request = ConformRequest(
        *(tuple(sorted(cells)), asked.drawing, "none", len(models), None, asked.rng_seed),
        model=asked.model,
    )
    header = ConformHeader(
        edgeflare_protos.__version__,
        request,
        opened.provenance,
        describe_host(None),
        specification_digest(),
    )
    state, coverage = Conformance(), Coverage(request.cells)
    for again in found:
        state.add(again.judged)
        coverage.add(again.judged.draft, again.judged.outcome)
    seconds = time.monotonic() - begin
    written = conform_outcome(header, state, coverage, (), None, "models", seconds)
    warning = (
        f"This is a replay of {count_of(len(found), 'finding')} of a run on"
        f" {document.device.name}: what it did not try may fail as well."
    )
    fails = (again for again in found if again.outcome in ("still", "otherwise"))
    written = msgspec.structs.replace(
        written, findings=tuple(_kept(fail, out) for fail in fails), warnings=(warning,)
    )
    write_atomically(out.path / CONFORM_DOCUMENT, json_bytes(msgspec.to_builtins(written)))
    return found


def _kept(one: RetriedFinding, out: RunDirectory) -> FoundFault:
    """Store the files of a finding that fails, and return what the document says of it."""
    was, now = one.finding, one.judgement
    worst = kept_error(now.worst)
    turns, model = _in_turn(one.stored)
    exact = _exact(one.stored)
    name = store_finding(out, was.number, model, one.answers, exact, turns)
    smallest = msgspec.structs.replace(was.smallest, worst=worst, detail=now.detail, file=name)
    return msgspec.structs.replace(
        was,
        verdict=now.verdict,
        symptom=now.symptom,
        counted=now.counted,
        failing=1,
        worst=worst,
        unit=now.unit or None,
        wrong=tuple(now.wrong),
        detail=now.detail,
        smallest=smallest,
    )


def _exact(stored: StoredModel) -> Sequence[ExactAnswer]:
    if stored.is_graph:
        return ()
    (node,), (graph,) = stored.draft.nodes, stored.model.alone
    rows = stored.finding.smallest.rows
    return exact_rows(known_operators()[node.operator], graph, stored.files.operands, rows)
