"""What a run warns of: answers that look wrong, equal arms, idle delegates, several hosts."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from documents import run_device, run_host
from edgeflare.core.answer import Answer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.models.run_host import RunHost
from edgeflare.run.begin_or_resume import resume_run
from edgeflare.run.derive_document import write_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import to_json
from edgeflare.run.run_header import OtherHostError, RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.run_warnings import seed_warnings, undelegated
from edgeflare.tasks.classification import Classification, softmax
from laboratory import CLASSES, SIDE, Invoke, Laboratory, linear
from merged_parts import about_of, copied, note_about
from recorded_run import Run

OF_ANSWER = 4


def answer(scores: list[float]) -> Answer:
    values = np.array(scores)
    tied = bool((values == values.max()).sum() > 1)
    return Answer(int(values.argmax()), tied, softmax(values[None])[0], values)


def varied(count: int) -> list[Answer]:
    return [answer(np.roll([4.0, 1.0, 0.5, 0.0], at).tolist()) for at in range(count)]


FLAT = answer(OF_ANSWER * [0.0])


def lines(twin: list[Answer], device: list[Answer]) -> list[str]:
    outcomes = [
        Outcome({Arm.ORIGINAL: original, Arm.TWIN: mine, Arm.DEVICE: its})
        for original, mine, its in zip(varied(len(twin)), twin, device, strict=True)
    ]
    return seed_warnings(Classification(), outcomes, None)


def test_a_device_whose_answers_are_all_equal_varies_too_little_and_ties() -> None:
    varies, ties = lines(varied(20), 20 * [FLAT])
    assert varies.startswith("the device's outputs hardly vary over the seeds; its twin shows no")
    assert ties.startswith("the device's decision hangs on a tie of equal outputs on 20 of 20")
    (varies,) = lines(varied(20), 20 * varied(1))  # one class, and no tie
    assert "the device's outputs hardly vary" in varies
    assert lines(varied(20), varied(20)) == []


def test_what_the_twin_shows_too_is_no_sign_of_the_device() -> None:
    said = lines(20 * [FLAT], 20 * [FLAT])
    assert not any("the device's outputs" in line for line in said)
    assert any("the compressed model's outputs hardly vary" in line for line in said)


@pytest.mark.parametrize(("ties", "said"), [(2, 0), (3, 1)])
def test_more_than_a_tenth_of_ties_is_said(ties: int, said: int) -> None:
    device = [*varied(20)[ties:], *ties * [FLAT]]
    assert len(lines(varied(20), device)) == said


_RNG = np.random.default_rng(7)
WEIGHTS = _RNG.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
IMAGES = _RNG.integers(0, 256, (5, SIDE, SIDE, 1), dtype=np.uint8)
PLAIN = linear(WEIGHTS)


def louder(image: NDArray[np.generic]) -> NDArray[np.generic]:
    """Other outputs than the plain model's, and always its label."""
    return np.asarray(PLAIN(image) * np.float32(1.5))


def warnings_of(
    folder: Path,
    find: Find,
    original: Invoke,
    twin: Invoke,
    device: Invoke,
    stop_after: int | None = None,
) -> list[str]:
    models = {Arm.ORIGINAL: original, Arm.TWIN: twin, Arm.DEVICE: device}
    laboratory = Laboratory(folder, IMAGES, models)
    document = laboratory.run("run", goal=Goal(find), max_queries=12, stop_after=stop_after)
    return list(document["warnings"])


@pytest.mark.parametrize("find", [Find.ANY, Find.KERNEL])
def test_arms_that_do_not_differ_are_named_once_a_seed_was_searched(
    find: Find, tmp_path: Path
) -> None:
    (line,) = warnings_of(tmp_path, find, PLAIN, PLAIN, PLAIN)
    assert warnings_of(tmp_path / "stopped", find, PLAIN, PLAIN, PLAIN, stop_after=1) == []
    first = "twin" if find is Find.KERNEL else "original"
    assert line.startswith(f"nothing was found, and {first} and device gave equal outputs on all 5")


@pytest.mark.parametrize("find", [Find.ANY, Find.COMPRESSION])
def test_where_only_kernels_differ_it_says_how_to_look_for_that(find: Find, tmp_path: Path) -> None:
    (line,) = warnings_of(tmp_path, find, PLAIN, PLAIN, louder)
    assert "original and twin gave equal outputs on all 5 seeds" in line
    assert "--find kernel" in line


def test_where_only_compression_differs_the_kernels_are_the_same(tmp_path: Path) -> None:
    (line,) = warnings_of(tmp_path, Find.KERNEL, PLAIN, louder, louder)
    assert "twin and device" in line


@pytest.mark.parametrize("find", [Find.ANY, Find.KERNEL])
def test_arms_that_differ_but_not_in_labels_are_not_spoken_of(find: Find, tmp_path: Path) -> None:
    twin = linear(WEIGHTS * np.float32(1.25))
    assert warnings_of(tmp_path, find, PLAIN, twin, louder) == []


TOOK_NOTHING: dict[str, Any] = {
    "runtime": "tflite-runtime", "runtime_version": "2.14.0", "kernels": "xnnpack",
    "delegated_nodes": 0, "total_nodes": 11, "delegate": None,
}  # fmt: skip
NONE_OF_THE_NODES = "but tflite-runtime 2.14.0 gave it none of the 11 nodes"
DELEGATE = {"delegate": "libedgetpu.so.1"}


def said(**changes: Any) -> list[str]:
    return undelegated([run_device(**TOOK_NOTHING | changes)])


def test_what_was_asked_for_and_did_not_run_is_named() -> None:
    assert said() == [f"board: asked for xnnpack, {NONE_OF_THE_NODES}: optimized built-ins ran"]
    external = [f"board: asked for the delegate libedgetpu.so.1, {NONE_OF_THE_NODES}"]
    assert said(kernels="builtin", **DELEGATE, external_nodes=0) == external
    # What XNNPACK took is not the external delegate's.
    assert said(**DELEGATE, delegated_nodes=11, external_nodes=0) == external


@pytest.mark.parametrize(
    "changes",
    [
        {"delegated_nodes": 1},
        {"delegated_nodes": None, "total_nodes": None},
        {"kernels": "builtin"},
        {"kernels": "reference"},
        {**DELEGATE, "delegated_nodes": 11, "external_nodes": 2},
    ],
)
def test_of_what_ran_as_asked_nothing_is_said(changes: dict[str, Any]) -> None:
    assert said(**changes) == []


def test_each_device_of_a_run_speaks_for_itself(run: Run, tmp_path: Path) -> None:
    here = copied(run.folder, tmp_path / "run")
    devices = [
        run_device(name, **{**TOOK_NOTHING, "kernels": kernels})
        for name, kernels in (("a", "xnnpack"), ("b", "builtin"), ("c", "xnnpack"))
    ]
    note_about(here, devices=list(map(to_json, devices)))
    with closing(RunJournal.open(here / "run.db")) as journal:
        warned = write_document(RunDirectory(here), journal).warnings
    told = undelegated(devices)
    assert warned == (*told, *run.document["warnings"])
    assert [line.split(":")[0] for line in told] == ["a", "c"]


FIRST_HOST = run_host(cpu_features=["avx"])


def host_lines(run: Path) -> list[str]:
    with closing(RunJournal.open(run / "run.db")) as journal:
        document = write_document(RunDirectory(run), journal)
    return [line for line in document.warnings if "several hosts worked on this run" in line]


def gone_on(run: Path, host: RunHost) -> None:
    """Go on with a run on a host, though it is another one."""
    header = replace(RunHeader.from_json(about_of(run)), host=host)
    _, journal = resume_run(run, header, allow_other_host=True)
    journal.close()


def test_each_other_host_is_named_once(run: Run, tmp_path: Path) -> None:
    here = copied(run.folder, tmp_path / "run")
    note_about(here, host=to_json(FIRST_HOST))
    gone_on(here, structs.replace(FIRST_HOST, cores=64))
    assert host_lines(here) == []
    for _ in range(2):
        gone_on(here, structs.replace(FIRST_HOST, cpu_features=("avx", "amx_int8")))
        (line,) = host_lines(here)
    assert line == (
        "several hosts worked on this run, which differ in cpu_features (no others, amx_int8):"
        " original and twin may have answered differently on each"
    )
    gone_on(here, structs.replace(FIRST_HOST, machine="aarch64"))
    assert [said.partition(" (")[2].partition(")")[0] for said in host_lines(here)] == [
        "no others, amx_int8",
        "x86_64, aarch64",
    ]


def test_a_host_that_is_not_allowed_leaves_the_run_as_it_was(run: Run, tmp_path: Path) -> None:
    here = copied(run.folder, tmp_path / "run")
    note_about(here, host=to_json(FIRST_HOST))
    before = about_of(here)
    header = replace(
        RunHeader.from_json(before), host=structs.replace(FIRST_HOST, machine="aarch64")
    )
    with pytest.raises(OtherHostError, match="machine x86_64 there and aarch64 here"):
        resume_run(here, header)
    assert about_of(here) == before
    assert (here / "run.json").is_file()
