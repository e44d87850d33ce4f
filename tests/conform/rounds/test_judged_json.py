"""What was said of drafts, kept in the journal and read back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from conforming import an_addition
from drafting import relu_chain
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.rounds.judged_draft import JudgedDraft
from edgeflare.conform.rounds.judged_json import (
    drafts_digest,
    judged_from_json,
    judged_to_json,
)
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement, Symptom, Verdict

JUDGEMENTS = st.builds(
    KernelJudgement,
    verdict=st.sampled_from(get_args(Verdict)),
    symptom=st.sampled_from(get_args(Symptom)),
    counted=st.booleans(),
    worst=st.floats(0, allow_nan=False),
    unit=st.sampled_from(["", "steps", "ulp"]),
    wrong=st.lists(st.text()).map(tuple),
    detail=st.text(),
)


@given(
    st.lists(
        st.builds(
            JudgedDraft,
            draft=st.just(relu_chain([(2,), (2,)])),
            nodes=st.tuples(st.none() | JUDGEMENTS, st.none() | JUDGEMENTS),
            whole=st.none() | JUDGEMENTS,
        )
    )
)
def test_what_was_said_is_read_back(judged: list[JudgedDraft]) -> None:
    written = json.loads(json.dumps(judged_to_json(judged)))
    assert judged_from_json([one.draft for one in judged], written) == judged


def test_the_digest_tells_drafts_apart() -> None:
    node = an_addition()
    others = [
        [],
        [Draft((node,))],
        [Draft((node,)), Draft((node,))],
        [Draft((node, node))],
        [Draft((replace(node, constants=8),))],
        [Draft((replace(node, sources=(0, -1)),))],
        [Draft((an_addition(output_scale=2.0),))],
    ]
    assert len({drafts_digest(one) for one in others}) == len(others)
    assert drafts_digest([Draft((an_addition(),))]) == drafts_digest([Draft((node,))])
