"""What is no part of one run with another: refused in one line that says the difference."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeflare.record.folder_lock import lock_folder
from edgeflare.run.merge.merge_runs import merge_runs
from edgeflare.run.same_run import OtherHostError
from merged_parts import MergedParts, about_of, copied, merged, note_about

pytestmark = pytest.mark.slow

Refusal = Callable[..., str]
About = dict[str, Any]

HOST: About = {"machine": "x86_64", "cpu_features": ["avx", "avx2"], "runtime_version": "2.3.0"}


def another_plan(**fields: Any) -> Callable[[About], About]:
    return lambda about: {"plan": {**about["plan"], **fields}}


def another_pair(about: About) -> About:
    return {"pair": {**about["pair"], "name": "other", "fingerprint": "1"}}


def other_kernels(about: About) -> About:
    (device,) = about["devices"]
    return {"devices": [{**device, "provenance": {**device["provenance"], "kernels": "xnnpack"}}]}


def other_outputs(about: About) -> About:
    device = {**about["arms"]["device"], "outputs": "probabilities"}
    return {"arms": {**about["arms"], "device": device}}


def held_out_inputs(about: About) -> About:
    return {
        "test": {"path": "t.npz", "images": 2, "sha256": 64 * "b", "labels": None, "targets": None}
    }


CHANGES: dict[str, tuple[Callable[[About], About], str]] = {
    "pair": (another_pair, "are of different pairs (laboratory, other, or other files"),
    "run seed": (another_plan(rng_seed=1), "with --rng-seed 0 in the one and 1 in the other"),
    "strategy": (another_plan(strategy="random"), "with --strategy boundary in the one and random"),
    "queries": (another_plan(max_queries=15), "with --max-queries 14 in the one and 15 in the"),
    "refinement": (another_plan(shrink=0), "with --shrink 20 in the one and 0 in the other"),
    "coverage": (another_plan(coverage=[0.5]), "with --coverage none in the one and 0.5 in the"),
    "kernels": (other_kernels, "with kernels builtin in the one and xnnpack in the other"),
    "version": (lambda _: {"version": "0.9"}, "the version of edgeflare differs (test, 0.9)"),
    "seeds": (lambda _: {"all_seeds": 11}, "the choice of seeds differs"),
    "devices": (lambda about: {"devices": 2 * about["devices"]}, "the number of devices differs"),
    "screening": (
        lambda _: {"screening": 64 * "c"},
        "the screening differs (",
    ),
    "held-out inputs": (
        held_out_inputs,
        "what --test gives differs (nothing, bbbbbbbbbbbb, labels ",
    ),
    "outputs": (other_outputs, "how outputs are read differs"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_runs_that_are_no_parts_of_one_are_refused_with_the_first_difference(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, what: str
) -> None:
    change, said = CHANGES[what]
    other = copied(parts.single(1), tmp_path / "other")
    note_about(other, **change(about_of(other)))
    complaint = refusal(merged, [parts.single(0), other], tmp_path / "merged")
    assert complaint.startswith(f"{parts.single(0)} and {other} are ")
    assert said in complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other"]


@pytest.mark.parametrize(("key", "what"), [("replay", "replay"), ("survey", "survey")])
def test_what_is_no_search_is_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, key: str, what: str
) -> None:
    other = copied(parts.single(1), tmp_path / "other")
    note_about(other, **{key: {"of": "runs/before"}})
    said = refusal(merged, [parts.single(0), other], tmp_path / "merged")
    assert said == f"{other} is a {what}: merge takes runs of `edgeflare search`"


def test_what_is_no_run_is_refused(parts: MergedParts, tmp_path: Path, refusal: Refusal) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "run.db").write_text("no database, but some text that is long enough")
    for name, said in (
        ("absent", "there is no run directory"),
        ("empty", "no run"),
        ("text", "run.db is damaged"),
    ):
        complaint = refusal(merged, [parts.single(0), tmp_path / name], tmp_path / "merged")
        assert said in complaint, complaint
        assert not (tmp_path / "merged").exists()


def two_hosts(parts: MergedParts, tmp_path: Path, **other: Any) -> list[Path]:
    """Return two parts that were made on hosts which differ."""
    runs = [copied(parts.single(at), tmp_path / str(at)) for at in (0, 1)]
    for run, host in zip(runs, (HOST, {**HOST, **other}), strict=True):
        note_about(run, host=host)
    return runs


def test_parts_of_hosts_that_may_answer_otherwise_need_to_be_allowed(
    parts: MergedParts, tmp_path: Path
) -> None:
    runs = two_hosts(parts, tmp_path, cpu_features=["avx", "amx_int8"])
    with pytest.raises(OtherHostError, match=r"cpu_features avx2 and amx_int8, which may have"):
        merged(runs, tmp_path / "merged")
    document = merge_runs(runs, tmp_path / "merged", overwrite=False, allow_other_host=True)
    (line,) = document.warnings
    assert "several hosts worked on this run, which differ in cpu_features (avx2, amx_int8)" in line
    # What it is merged with says so, too, and says it once.
    more = copied(parts.single(2), tmp_path / "2")
    note_about(more, host=HOST)
    again = merge_runs(
        [more, tmp_path / "merged", runs[1]],
        tmp_path / "again",
        overwrite=False,
        allow_other_host=True,
    )
    assert again.warnings == document.warnings


def test_hosts_that_differ_in_what_decides_no_answer_are_the_same(
    parts: MergedParts, tmp_path: Path
) -> None:
    runs = two_hosts(parts, tmp_path, cores=64, system="another")
    assert merge_runs(runs, tmp_path / "merged", overwrite=False).warnings == ()


@pytest.mark.parametrize(
    "said",
    [
        {"health": [1]},
        {"health": {"devices": [{}], "warnings": []}},
        {"notes": 5},
        {"screening": 5},
        {"test": [1]},
        {"other_hosts": [{}]},
        {"all_seeds": 1},
    ],
)
def test_a_part_that_says_of_itself_what_no_run_says_is_damaged(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, said: dict[str, Any]
) -> None:
    other = copied(parts.single(1), tmp_path / "other")
    note_about(other, **said)
    complaint = refusal(merged, [parts.single(0), other], tmp_path / "merged")
    assert complaint.startswith(f"{other / 'run.db'} is damaged")
    assert not (tmp_path / "merged").exists()


def test_a_part_that_is_being_worked_on_is_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal
) -> None:
    other = copied(parts.single(1), tmp_path / "other")
    lock = lock_folder(other)
    try:
        said = refusal(merged, [parts.single(0), other], tmp_path / "merged")
    finally:
        os.close(lock)
    assert said.startswith(f"{other} is being worked on by another process")
