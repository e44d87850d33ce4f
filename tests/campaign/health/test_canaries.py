"""What a campaign does about a device that changes its mind."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator, RawBatch, Signature
from edgeflare.models.preprocess import Encoder, Preprocess
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from laboratory import SIGNATURE, Laboratory, untimed
from scripted_health import scripted_device


class Forger:
    """A device that answers the canary as it is told from its n-th canary on, and else truly."""

    def __init__(
        self,
        inner: Evaluator,
        canary: NDArray[np.generic],
        changes: dict[int, float],
        before: int,
    ) -> None:
        self._inner, self._canary, self._changes = inner, canary, changes
        self.canaries = before  # -1 where it is asked as a seed first

    @property
    def signature(self) -> Signature:
        return SIGNATURE

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        truth = self._inner.submit(inputs).result()
        outputs = truth.outputs.copy()
        for row, image in enumerate(inputs):
            if np.array_equal(image, self._canary):
                self.canaries += 1
                outputs[row] = self._forged(outputs[row])
        answer: Future[RawBatch] = Future()
        answer.set_result(RawBatch(outputs, truth.failures))
        return answer

    def close(self) -> None:
        self._inner.close()

    def _forged(self, scores: NDArray[np.generic]) -> NDArray[np.generic]:
        amount = self._changes.get(self.canaries, self._changes.get(-1, 0.0))
        if self.canaries < 1 or not amount:
            return scores
        moved: NDArray[np.generic] = scores.astype(np.float32) + np.float32(amount)
        return moved if amount < 1 else np.roll(scores, 1)


def forger(laboratory: Laboratory, changes: dict[int, float], *, screened: bool = True) -> Any:
    """Wrap devices so that the canary's answer changes: below 1 its scores, from 1 on its label.

    Keys are the how-manieth canary; -1 stands for all others.
    """
    (first,) = Encoder(Preprocess(), SIGNATURE.input).encode(laboratory.images[:1])
    return lambda inner: Forger(inner, first, changes, -1 if screened else 0)


@pytest.mark.slow
@pytest.mark.parametrize("chains", [1, 16, 512])
def test_canaries_are_asked_as_often_as_the_profile_says_and_change_nothing(
    laboratory: Laboratory, chains: int
) -> None:
    without = laboratory.run("without", chains=chains)
    laboratory.monitored = (scripted_device(),)
    document = laboratory.run("with", chains=chains)
    asked = document["totals"]["device_queries"] // 100
    assert asked > 10
    assert document["health"][0]["canaries"] == {"same": asked}
    for key in ("overhead_queries", "overhead_device_queries"):
        assert document["totals"][key] == without["totals"][key] + asked
        document["totals"][key] = without["totals"][key]
    assert untimed(document) == untimed(without)


def test_a_run_that_was_stopped_asks_no_canary_twice(laboratory: Laboratory) -> None:
    laboratory.monitored = (scripted_device(),)
    whole = laboratory.run("whole")
    for stop_after in (150, 420, 777, None):
        parts = laboratory.run("parts", resume=stop_after != 150, stop_after=stop_after)
    assert untimed(parts) == untimed(whole)
    assert parts["health"][0]["canaries"] == whole["health"][0]["canaries"]


def test_refining_asks_canaries_too(laboratory: Laboratory) -> None:
    laboratory.monitored = (scripted_device(canary_every=20),)
    whole = laboratory.run("whole", shrink=60)
    refined = sum(one["refined"]["device_queries"] for one in whole["findings"])
    assert refined > 3 * 20
    asked = (whole["totals"]["device_queries"] + refined) // 20
    assert whole["health"][0]["canaries"] == {"same": asked}

    laboratory.run("parts", stop_after=500, shrink=60)
    parts = laboratory.run("parts", resume=True, shrink=60)
    assert untimed(parts) == untimed(whole)
    assert parts["health"][0]["canaries"] == {"same": asked}


def test_a_device_that_changes_its_mind_while_findings_are_refined_ends_the_run(
    laboratory: Laboratory,
) -> None:
    laboratory.monitored = (scripted_device(canary_every=20),)
    searched = laboratory.run("searched")["totals"]["device_queries"] // 20
    changed = forger(laboratory, dict.fromkeys(range(searched + 2, 10**4), 1.0))
    with pytest.raises(InfrastructureError, match="its answer to seed 0 has changed"):
        laboratory.run("run", shrink=60, wrap_device=changed)


def test_none_are_asked_where_the_profile_says_0(laboratory: Laboratory) -> None:
    laboratory.monitored = (scripted_device(canary_every=0),)
    assert laboratory.run("run")["health"][0]["canaries"] == {}


def test_an_answer_that_has_changed_for_good_ends_the_run_and_is_looked_at_on_resume(
    laboratory: Laboratory,
) -> None:
    laboratory.monitored = (scripted_device(),)
    whole = laboratory.run("whole")
    drifted = forger(laboratory, {**dict.fromkeys(range(1, 4), 0.0), -1: 1.0})
    with pytest.raises(
        InfrastructureError,
        match=r"^board: its answer to seed 0 has changed from class \d to class \d, somewhere after"
        r" 300 device queries: what it answered since then is not to be trusted",
    ):
        laboratory.run("run", wrap_device=drifted)
    document = load_document(RunDirectory(laboratory.folder / "run"))
    assert document.stopped_by == "infrastructure"
    assert document.health is not None
    assert document.health[0].failed
    assert document.findings == ()  # nothing is verified on such a device
    assert any("is not to be trusted" in line for line in document.warnings)

    with pytest.raises(InfrastructureError, match="after 300 device queries"):
        laboratory.run(
            "run", wrap_device=forger(laboratory, {-1: 1.0}, screened=False), resume=True
        )

    cured = laboratory.run("run", resume=True)
    assert not cured["health"][0]["failed"]
    assert untimed(cured)["findings"] == untimed(whole)["findings"]


def test_an_answer_that_changes_once_is_told_and_survived(laboratory: Laboratory) -> None:
    laboratory.monitored = (scripted_device(),)
    document = laboratory.run("run", wrap_device=forger(laboratory, {3: 1.0}))
    (warning,) = [line for line in document["warnings"] if "canary" in line]
    assert warning.startswith("board answered its canary, seed 0, with class ")
    assert warning.endswith(" once, and rightly when asked again")
    assert document["health"][0]["canaries"]["changed"] == 1
    assert document["stopped_by"] is None


def test_outputs_that_vary_under_the_same_label_are_told_once(laboratory: Laboratory) -> None:
    laboratory.monitored = (scripted_device(),)
    document = laboratory.run("run", wrap_device=forger(laboratory, {-1: 0.25}))
    assert [line for line in document["warnings"] if "to the bit" in line] == [
        "board does not repeat its answers to the bit: the label of its canary, seed 0, held, and"
        " its outputs varied"
    ]
    assert document["health"][0]["canaries"]["varied"] > 10
