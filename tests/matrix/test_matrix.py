"""A matrix of kernel sets: who stands alone, its tables, and its folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformed_runs import BOARD, HALF_TRIED, constructed_conformance, finding_entry
from edgeflare.cli.kernel_set_matrix import matrix_section, sentences
from edgeflare.conform.record.conform_document import ConformDocument, FoundFault
from edgeflare.core.answer import Answer, Failure
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.matrix.conform_matrix import (
    RetryMatrix,
    conform_matrix,
    conform_matrix_section,
    retry_matrix_document,
    retry_matrix_section,
)
from edgeflare.matrix.kernel_set_runs import KernelSetRun
from edgeflare.matrix.matrix import (
    InputAgreement,
    KernelSetFigures,
    Matrix,
    StoredTrigger,
    agreements,
)
from edgeflare.matrix.matrix_document import write_matrix
from edgeflare.matrix.matrix_folder import (
    MATRIX,
    a_begun_run,
    check_matrix_folder,
    claimed_matrix,
    is_begun,
    remove_other_runs,
    remove_tables,
)
from edgeflare.pages.markdown import markdown_section
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder_contents import FOLDER, list_as
from edgeflare.run.run_directory import RunDirectory
from edgeflare_protos.kernel_sets import Kernels
from kills import Kill, killed_at_each, put_notes, require_notes

NAMES = ("xnnpack", "builtin", "reference", "gpu", "micro")
KERNEL = Goal(find=Find.KERNEL)


def answer(label: int | None, *, tied: bool = False, failure: Failure | None = None) -> Answer:
    probabilities = np.zeros(3)
    if label is not None:
        probabilities[:] = 0.1
        probabilities[label] = 0.8
    return Answer(label, tied, probabilities, probabilities, failure)


def agreement(
    twin: int, devices: Sequence[Answer], goal: Goal = KERNEL
) -> tuple[InputAgreement, tuple[str, ...]]:
    names = NAMES[: len(devices)]
    outcomes = {
        name: [Outcome({Arm.TWIN: answer(twin), Arm.DEVICE: device})]
        for name, device in zip(names, devices, strict=True)
    }
    (found,) = agreements(outcomes, [goal])
    return found, names


@settings(deadline=None)
@given(st.integers(0, 2), st.lists(st.integers(0, 2), min_size=2, max_size=5))
def test_who_stands_alone_differs_from_all_others_and_they_agree(
    twin: int, labels: list[int]
) -> None:
    found, names = agreement(twin, [answer(label) for label in labels])
    by_name = dict(zip(names, labels, strict=True))
    assert set(found.deviating) == {name for name in names if by_name[name] != twin}
    others = [label for name, label in by_name.items() if name != found.alone]
    if found.alone is not None:
        assert len(set(others)) == 1
        assert by_name[found.alone] not in others
        assert len(names) >= 3
    elif len(names) >= 3:
        assert not any(labels.count(one) == 1 and len(set(labels)) == 2 for one in labels)
    assert set(found.apart) == {
        (one, other)
        for at, one in enumerate(names)
        for other in names[at + 1 :]
        if by_name[one] != by_name[other]
    }


def test_each_input_is_judged_by_its_own_goal() -> None:
    """As of a mutant and of a seed, on which every changed decision counts."""
    tied = {
        name: 2 * [Outcome({Arm.TWIN: answer(0), Arm.DEVICE: answer(label, tied=label == 1)})]
        for name, label in zip(NAMES[:3], (0, 0, 1), strict=True)
    }
    mutant, seed = agreements(tied, [KERNEL, KERNEL.unmutated])
    assert (mutant.deviating, mutant.alone) == ((), None)
    assert (seed.deviating, seed.alone) == ((NAMES[2],), NAMES[2])


@pytest.mark.parametrize(("ties", "alone"), [(False, None), (True, "gpu")])
def test_a_difference_by_a_tie_counts_only_where_ties_do(ties: bool, alone: str | None) -> None:
    devices = [answer(0), answer(0), answer(0), answer(1, tied=True)]
    found, _ = agreement(0, devices, Goal(find=Find.KERNEL, ties=ties))
    assert found.alone == alone
    assert found.deviating == ((alone,) if alone else ())


def test_a_kernel_set_that_alone_crashes_stands_alone() -> None:
    devices = [answer(0), answer(None, failure="crash"), answer(0)]
    found, _ = agreement(0, devices)
    assert (found.alone, found.deviating) == ("builtin", ("builtin",))


TOLD = replace(BOARD, runtime="litert", runtime_version="2.3", delegated_nodes=0, total_nodes=9)
REFUSAL = "the GPU accelerator takes 3 of 9 nodes, and not SHAPE: add --fold-shapes"


def row(kernels: str, deviating: int, alone: int = 0) -> KernelSetFigures:
    device = f"emulated-{kernels}"
    return KernelSetFigures(kernels, device, "", TOLD, 4, 0, deviating, deviating, alone)


def matrix(*, ties: bool = False) -> Matrix:
    refusing = KernelSetFigures("gpu", "emulated-gpu", REFUSAL)
    rows = (row("xnnpack", 0), row("builtin", 1), row("micro", 2, 1), refusing)
    triggers = tuple(
        StoredTrigger("micro", f"findings/{at}.png", at, "00", None)  # type: ignore[arg-type]
        for at in (0, 1)
    )
    apart = (("xnnpack", "micro"), ("builtin", "micro"))
    agreement = (
        InputAgreement(("micro",), "micro", apart),
        InputAgreement(("builtin", "micro"), None, (("xnnpack", "micro"),)),
    )
    return Matrix("search", "a|pair", Goal(Find.KERNEL, ties), rows, triggers, agreement)


def test_it_says_who_stands_alone_who_agrees_and_who_refuses() -> None:
    assert sentences(matrix()) == [
        "micro stands alone on 1 of 2 inputs: all others decide alike there",
        "xnnpack and builtin decide alike on all of 2 inputs",
        f"gpu refused: {REFUSAL}",
    ]


@pytest.mark.parametrize("ties", [False, True])
def test_it_has_a_row_for_each_kernel_set_and_tells_of_ties(ties: bool) -> None:
    said = markdown_section(matrix_section(matrix(ties=ties)))
    assert said.startswith(r"## a\|pair: ")
    taken = "0 of 9 nodes delegated"
    assert f"| micro | litert 2.3 | {taken} | 0/4 | 2/4 | 2/2 | 1 |" in said
    assert "| gpu | – | refused, see below | – | – | – | – |" in said
    assert ("ties are no deviations" in said) == (not ties)


def finding(operator: str, verdict: str, worst: float | None, **others: Any) -> FoundFault:
    return finding_entry(operator=operator, type="int8", verdict=verdict, worst=worst, **others)


def conformed(
    kernels: str,
    findings: list[FoundFault],
    refused: tuple[str, ...] = (),
    model: dict[str, Any] | None = None,
) -> KernelSetRun[ConformDocument]:
    board = replace(
        BOARD, name=f"emulated-{kernels}", runtime="litert", runtime_version="2.3", kernels=kernels
    )
    no_verdicts: dict[str, Any] = {
        "type": "int8",
        "verdicts": {},
        "rounding": None,
        "rounding_unit": None,
    }
    document = constructed_conformance(
        findings,
        device=board.to_json(),
        models=30,
        cells=[{"operator": one, **no_verdicts} for one in ("ADD", "EXP", "SUM")],
        refused=[
            {"operator": one, "type": "int8", "models": 1, "always": True, "message": ""}
            for one in refused
        ],
        model=model,
    )
    return KernelSetRun(profile(kernels), document)


def profile(kernels: str) -> Profile:
    name = f"emulated-{kernels}"
    return Profile(name=name, transport="emulated", kernels=cast("Kernels", kernels))


def test_the_one_that_alone_is_wrong_is_named_and_those_that_refuse_do_not_vouch() -> None:
    matrix = conform_matrix(
        [
            conformed("xnnpack", [finding("EXP", "shared", 3.0, counted=False)]),
            conformed("builtin", [finding("SUM", "host", 9.0, counted=False)]),
            conformed(
                "gpu", [finding("ADD", "device", 2.0), finding("ADD", "device", 40.0)], ("SUM",)
            ),
            conformed("micro", [finding("SUM", "crash", None, symptom="crash")], ("EXP",)),
            KernelSetRun(profile("npu"), refused="there is no NPU"),
        ]
    )
    assert set(matrix.cells) == {("ADD", "int8"), ("EXP", "int8"), ("SUM", "int8")}
    add = matrix.cells["ADD", "int8"]
    assert (add["gpu"].state, add["gpu"].worst) == ("wrong", "40 steps")
    assert {one.state for name, one in add.items() if name != "gpu"} == {"right"}
    assert matrix.cells["SUM", "int8"]["gpu"].state == "refused"
    assert matrix.cells["SUM", "int8"]["micro"].worst == "crash"
    # Where the twin is as wrong, the device is wrong all the same.
    assert matrix.alone == {
        ("ADD", "int8"): "gpu",
        ("EXP", "int8"): "xnnpack",
        ("SUM", "int8"): "micro",
    }
    rows = {row.kernels: row for row in matrix.rows}
    assert (rows["gpu"].taken, rows["gpu"].refused, rows["gpu"].wrong) == (2, 1, 1)
    assert (rows["xnnpack"].new, rows["gpu"].new) == (0, 2)
    assert matrix.refused == {"npu": "there is no NPU"}
    said = markdown_section(conform_matrix_section(matrix))
    assert "- npu: there is no NPU" in said
    assert "| ADD int8 | · | · | 40 steps | · | gpu |" in said


def test_operators_that_fail_joined_alone_have_a_row_and_are_no_operator_more() -> None:
    joined = finding("ADD then SUM", "device", 2.0)
    matrix = conform_matrix(
        [conformed("xnnpack", [joined]), conformed("builtin", []), conformed("micro", [])]
    )
    assert matrix.cells["ADD then SUM", "int8"]["xnnpack"].state == "wrong"
    row = matrix.rows[0]
    assert (row.taken, row.refused, row.wrong, row.alone, row.new) == (3, 0, 0, 0, 1)


def test_what_each_tried_of_the_users_model_comes_first() -> None:
    runs = [conformed("builtin", [], model=HALF_TRIED), conformed("xnnpack", [])]
    said = markdown_section(conform_matrix_section(conform_matrix(runs)))
    _, first, second, *_ = said.split("\n\n")
    assert first.startswith("- builtin: 48 % of the arithmetic of kws.tflite was tried")
    assert "not tried: Mfcc × 2" in first
    assert second.startswith("| kernels")


def test_of_two_that_take_an_operator_neither_stands_alone() -> None:
    wrong = [finding("ADD", "device", 2.0)]
    two = [conformed("xnnpack", []), conformed("gpu", wrong), conformed("micro", [], ("ADD",))]
    assert conform_matrix(two).alone == {}
    assert conform_matrix([*two, conformed("builtin", wrong)]).alone == {}


def begun(run: Path) -> None:
    """Begin a run in a matrix."""
    os.close(RunDirectory.claim(run, overwrite=False)[1])
    (run / "run.db").touch()
    MATRIX.take(run.parent, lambda: None).close()
    list_as(run.parent, run.name, FOLDER)


def test_an_absent_and_an_empty_folder_are_taken(tmp_path: Path) -> None:
    check_matrix_folder(tmp_path, resume=False, overwrite=False)
    check_matrix_folder(tmp_path / "new", resume=False, overwrite=True)
    with pytest.raises(UserError, match=r"no run of a kernel set in .* to go on with"):
        check_matrix_folder(tmp_path / "new", resume=True, overwrite=False)


def test_runs_that_are_there_stay_unless_told_otherwise(tmp_path: Path) -> None:
    assert a_begun_run(tmp_path) == tmp_path
    begun(tmp_path / "gpu")
    assert is_begun(tmp_path / "gpu")
    assert not is_begun(tmp_path / "builtin")
    assert a_begun_run(tmp_path) == tmp_path / "gpu"
    with pytest.raises(UserError, match="go on with --resume, replace it with --overwrite"):
        check_matrix_folder(tmp_path, resume=False, overwrite=False)
    check_matrix_folder(tmp_path, resume=True, overwrite=False)
    check_matrix_folder(tmp_path, resume=False, overwrite=True)


def test_what_is_no_matrix_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="neither empty nor a matrix of kernel sets"):
        check_matrix_folder(tmp_path, resume=False, overwrite=True)
    with pytest.raises(UserError, match="is a file"):
        check_matrix_folder(tmp_path / "notes.txt", resume=False, overwrite=True)
    begun(tmp_path / "other" / "micro")
    write_atomically(tmp_path / "other" / "gpu" / "shaders.txt", b"mine")
    with pytest.raises(UserError, match="gpu is neither empty nor a run"):
        check_matrix_folder(tmp_path / "other", resume=False, overwrite=True)


def test_what_is_replaced_goes_as_a_whole_and_what_is_of_others_stays(tmp_path: Path) -> None:
    for kernels in ("gpu", "micro"):
        begun(tmp_path / kernels)
    (tmp_path / "micro" / "notes.txt").write_text("mine")
    write_atomically(tmp_path / "matrix.json", b"{}")
    (tmp_path / "matrix.md").write_text("mine")
    remove_tables(tmp_path)
    assert not (tmp_path / "matrix.json").exists()
    assert (tmp_path / "matrix.md").read_text() == "mine"
    assert is_begun(tmp_path / "gpu")
    remove_other_runs(tmp_path, {"gpu", "micro"})
    assert is_begun(tmp_path / "gpu")
    remove_other_runs(tmp_path, set())
    assert not (tmp_path / "gpu").exists()
    left = {file.name for file in (tmp_path / "micro").iterdir()}
    assert left == {"notes.txt", "contents.jsonl"}
    check_matrix_folder(tmp_path, resume=False, overwrite=True)


def make_matrix(out: Path, *kernel_sets: Kernels, overwrite: bool) -> None:
    """Do what a command on kernel sets does that comes to its end."""
    with claimed_matrix(out, resume=False, overwrite=overwrite):
        for kernels in kernel_sets:
            directory, lock = RunDirectory.claim(out / kernels, overwrite=overwrite)
            write_atomically(directory.path / "findings" / "000001.png", b"png")
            write_atomically(directory.document, kernels.encode())
            os.close(lock)
        remove_tables(out)
        remove_other_runs(out, set(kernel_sets))
        matrix = RetryMatrix(kernel_sets, (), (), ())
        write_matrix(retry_matrix_document(matrix), retry_matrix_section(matrix), out)


def test_a_table_that_others_have_changed_is_not_replaced(tmp_path: Path) -> None:
    make_matrix(tmp_path, "gpu", overwrite=False)
    (tmp_path / "matrix.md").write_text("mine")
    with pytest.raises(UserError, match=r"matrix\.md is not as edgeflare left it"):
        make_matrix(tmp_path, "gpu", overwrite=True)
    assert (tmp_path / "matrix.md").read_text() == "mine"


@pytest.mark.slow
def test_a_matrix_that_is_killed_costs_nothing_of_the_users_and_is_made_again(
    tmp_path: Path,
) -> None:
    def prepare(folder: Path) -> Callable[[], None]:
        make_matrix(folder / "out", "gpu", "micro", overwrite=False)
        put_notes(folder / "out", folder / "out" / "gpu", folder / "out" / "micro")
        return lambda: make_matrix(folder / "out", "builtin", "micro", overwrite=True)

    def next_command(folder: Path, _: Kill) -> None:
        out = folder / "out"
        require_notes(out, out / "gpu", out / "micro")
        make_matrix(out, "builtin", "micro", overwrite=True)
        require_notes(out, out / "gpu", out / "micro")
        assert (out / "micro" / "run.json").read_text() == "micro"
        assert not (out / "gpu" / "run.json").exists()

    assert killed_at_each(tmp_path, prepare, next_command, every=2) > 15
