"""`edgeflare search` as its user meets it: what it prints and writes, and its exit codes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from called_commands import EXAMPLE, SMALL, Said, call_here, completed, document_of, refused
from laboratory import untimed
from onnx_models import linear_weights, write_linear_onnx

pytestmark = pytest.mark.slow


FEW = ("--first", "2")

KERNEL_TIES = ("--ties", "include", "--device", "emulated-reference", "--max-queries", "200")


def test_a_finished_run_is_what_was_promised(finished: Any) -> None:
    assert finished.said.code == 1
    document = document_of(finished.folder)
    assert document["stopped_by"] is None
    assert document["totals"]["seeds"] == 6
    assert document["findings"]
    for finding in document["findings"]:
        assert (finished.folder / finding["file"]).is_file()
    (device,) = document["devices"]
    assert device["name"] == "emulated-builtin"
    assert device["provenance"]["kernels"] == "builtin"


def test_without_a_terminal_progress_is_plain_lines(finished: Any) -> None:
    assert "\x1b" not in finished.said.out + finished.said.err
    lines = finished.said.err.splitlines()
    assert "seeds 6/6" in lines
    assert any(line.startswith("search 6/6 · ") for line in lines)
    assert lines[-1].startswith("verify ")
    assert "findings" in finished.said.out
    assert str(finished.folder) in finished.said.out.replace("\n", "")


def test_a_limit_takes_of_each_class_and_a_larger_one_finds_the_same_and_more(
    tmp_path: Path,
) -> None:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        order = np.argsort(arrays["labels"], kind="stable")
        images, labels = arrays["images"][order], arrays["labels"][order].tolist()
    np.savez(tmp_path / "sorted.npz", images=images, labels=labels)
    found: dict[int, dict[int, Any]] = {}
    options = ("--find", "compression", "--max-queries", "150", "--shrink", "0")
    for limit in (10, 20):
        run = tmp_path / str(limit)
        seeds = ("--seeds", tmp_path / "sorted.npz", "--limit", limit, "--within", "none")
        completed("search", EXAMPLE, *seeds, *options, "--fail-on", "none", "--out", run)
        document = document_of(run)
        assert document["totals"]["seeds"] == limit
        found[limit] = {entry["seed_id"]: entry for entry in untimed(document)["findings"]}
    assert len({entry["seed_label"] for entry in found[20].values()}) > 5
    for seed_id, entry in found[10].items():
        assert entry == found[20][seed_id]
    for seed_id, entry in found[20].items():
        assert (entry["seed_label"], entry["seed_name"]) == (labels[seed_id], str(seed_id))
        stored = cv2.imread(str(tmp_path / "20" / entry["seed_file"]), cv2.IMREAD_GRAYSCALE)
        np.testing.assert_array_equal(stored, images[seed_id].reshape(28, 28))
    completed("replay", tmp_path / "20", "--out", tmp_path / "replayed", code=1)
    replayed = document_of(tmp_path / "replayed")["findings"]
    assert {one["seed_id"]: one["seed_label"] for one in replayed} == {
        seed_id: entry["seed_label"] for seed_id, entry in found[20].items()
    }


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--min-strength", "1.0"), 0),
        # Reference kernels, and ties, since strict deviations by kernels are rare.
        (("--fail-on", "kernel", "--find", "kernel", *KERNEL_TIES), 1),
    ],
)
def test_the_exit_code_counts_what_was_asked_for(
    options: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    said = call_here("search", EXAMPLE, *SMALL, *FEW, *options, "--out", tmp_path / "run")
    assert said.code == code, said.err
    document = document_of(tmp_path / "run")
    counting = document["findings"] + document["deviating_seeds"]
    if "--min-strength" in options:
        assert {entry["strong"] for entry in counting} == {False}
    else:
        assert "kernel" in {entry["cause"] for entry in counting}


def test_findings_are_refined_and_the_report_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    refining = ("--strengthen", "60", "--shrink", "120")
    said = completed(
        "search", EXAMPLE, *SMALL, *FEW, *refining, "--fail-on", "none", "--out", folder
    )
    document = document_of(folder)
    assert document["plan"]["strengthen"] == 60
    assert document["plan"]["shrink"] == 120
    assert document["findings"]
    for finding in document["findings"]:
        assert finding["verified"]
        assert finding["strength"] >= finding["refined"]["strength_before"] - 1e-9
        assert (folder / finding["file"]).is_file()
        assert (folder / finding["refined"]["file_before"]).is_file()
    assert any(line.startswith("refining ") for line in said.err.splitlines())
    assert "refined" in said.out


def test_a_dry_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = completed("search", EXAMPLE, *SMALL, "--strengthen", "20", "--dry-run")
    assert "6 seeds, at most 150 queries" in said.out
    bound = "each finding is refined by at most 21 queries more, 126 for 6: --strengthen 20,"
    assert f"{bound} --shrink 0, of which 0 switches a step off" in " ".join(said.out.split())
    assert "nothing was written" in said.out
    assert list(tmp_path.iterdir()) == []
    text = " ".join(said.out.split())
    assert "model input = (pixel / 255 - 0) / 1, channels rgb, seeds of another size: none" in text
    right = "original 100.0%, twin 100.0%, device 100.0%"
    assert f"of the first 6 seeds 6 are labelled; right on them: {right}" in text
    assert "0 of the first 6 seeds already deviate" in text


def test_a_refused_run_stays_as_it_was_and_a_dry_run_refuses_the_same(
    finished: Any, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    again = ("search", EXAMPLE, *SMALL, "--out", run, "--resume")
    for how in ((), ("--dry-run",)):
        said = refused(*again, "--test", EXAMPLE / "seeds.npz", *how)
        assert f"{run} was begun without --test" in said
        assert "with --rng-seed 0, not 1" in refused(*again, "--rng-seed", "1", *how)
    assert document_of(run) == document_of(finished.folder)
    assert f"would go on with {run}; nothing was written" in " ".join(
        completed(*again, "--dry-run").out.split()
    )


def test_a_dry_run_shows_wrong_preprocessing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = completed("search", EXAMPLE, "--scale", "30000", "--dry-run")
    text = " ".join(said.out.split())
    assert "model input = (pixel / 30000 - 0) / 1, " in text
    assert "warning: the original's outputs hardly vary over the seeds" in text


def test_a_dry_run_of_kernels_alone_compares_twin_and_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(tmp_path / "seeds.npz", images=arrays["images"][:3])
    files = ("--compressed", EXAMPLE / "compressed.tflite", "--seeds", "seeds.npz")
    said = completed("search", *files, "--find", "kernel", "--dry-run")
    assert "0 of the first 3 seeds already deviate" in said.out
    assert "labelled" not in said.out


def test_a_dry_run_counts_labels_that_are_known_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        images, labels = arrays["images"][:4], arrays["labels"][:4].astype(np.int64)
    labels[:2] = -1, -9
    labels[3] = (labels[3] + 1) % 10
    np.savez(tmp_path / "seeds.npz", images=images, labels=labels)
    said = call_here("search", EXAMPLE, "--seeds", "seeds.npz", "--dry-run")
    text = " ".join(said.out.split())
    right = "original 50.0%, twin 50.0%, device 50.0%"
    assert f"of the first 4 seeds 2 are labelled; right on them: {right}" in text


@pytest.mark.old_board
@pytest.mark.parametrize("how", [["--dry-run"], ["--fail-on", "none"]])
def test_a_runtime_that_gave_xnnpack_nothing_is_told(
    how: list[str], old_board_python: Path, put_profile: Callable[[str, str], None]
) -> None:
    """The example is of int8, of which tflite-runtime 2.14 delegates nothing."""
    profile = f'transport = "emulated"\npython = "{old_board_python}"\nkernels = "xnnpack"\n'
    put_profile("old-board", profile)
    said = completed("search", EXAMPLE, *SMALL, *FEW, "--device", "old-board", "--trust", *how)
    words = " ".join(said.out.split())
    assert "warning: old-board: asked for xnnpack, but tflite-runtime 2.14.0 gave it none" in words
    assert "nodes: optimized built-ins ran" in words


def test_a_run_has_a_place_of_its_own_if_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--first", "1", "--max-queries", "5", "--shrink", "0", "--fail-on", "none")
    completed("search", EXAMPLE, *options)
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.startswith("fashion_lenet4-")
    document_of(run)


def test_overwriting_begins_anew(finished: Any, tmp_path: Path) -> None:
    run = shutil.copytree(finished.folder, tmp_path / "run")
    arguments = ("search", EXAMPLE, *SMALL, *FEW, "--rng-seed", "5", "--fail-on", "none")
    completed(*arguments, "--out", run, "--overwrite")
    completed(*arguments, "--out", tmp_path / "new")
    assert untimed(document_of(run)) == untimed(document_of(tmp_path / "new"))
    assert document_of(run)["totals"]["seeds"] == 2


def test_resuming_a_finished_run_changes_nothing(finished: Any, tmp_path: Path) -> None:
    run = shutil.copytree(finished.folder, tmp_path / "run")
    completed("search", EXAMPLE, *SMALL, "--out", run, "--resume", code=1)
    assert untimed(document_of(run)) == untimed(document_of(finished.folder))


def test_a_pair_by_flags_alone_is_the_same_pair(finished: Any, tmp_path: Path) -> None:
    flags = {
        "--original": EXAMPLE / "original.tflite",
        "--compressed": EXAMPLE / "compressed.tflite",
        "--seeds": EXAMPLE / "seeds.npz",
        "--scale": "255",
        "--mean": "0",
        "--std": "1",
    }
    arguments = [part for flag in flags.items() for part in flag]
    call_here("search", *arguments, *SMALL, "--out", tmp_path / "run")
    document, expected = document_of(tmp_path / "run"), document_of(finished.folder)
    assert document["pair"]["fingerprint"] == expected["pair"]["fingerprint"]
    assert untimed(document)["findings"] == untimed(expected)["findings"]


def test_an_onnx_and_a_python_original_are_searched_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_linear_onnx(tmp_path / "linear.onnx", linear_weights())
    np.save("weights.npy", linear_weights())
    Path("linear_classifier_of_a_test.py").write_text(
        "import numpy as np\nweights = np.load('weights.npy')\n"
        "def classify(image):\n    return image.reshape(1, -1) @ weights\n"
    )
    originals = {"onnx": "linear.onnx", "python": "linear_classifier_of_a_test:classify"}
    labels = {}
    for name, original in originals.items():
        options = (*SMALL, *FEW, "--original", original)
        completed("search", EXAMPLE, *options, "--out", tmp_path / name, code=1)
        document = document_of(tmp_path / name)
        # Untrained, so most seeds deviate; and the user is told that this original looks wrong.
        assert document["deviating_seeds"]
        labels[name] = [entry["labels"] for entry in document["deviating_seeds"]]
    assert labels["onnx"] == labels["python"]


@pytest.mark.parametrize(("fail_on", "code"), [("any", 2), ("none", 0)])
def test_a_gate_that_searched_nothing_does_not_pass(
    fail_on: str, code: int, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    limits = ("--first", "4", "--time-limit", "0.000001s", "--fail-on", fail_on)
    said = call_here("search", EXAMPLE, *limits, "--out", run)
    assert said.code == code
    complaint = "--time-limit 1e-06 ended before the search from any of 4 seeds did"
    assert (complaint in said.err) == (code == 2)
    document = document_of(run)
    assert document["stopped_by"] == "time-limit"
    assert document["totals"]["searched"] == 0
    assert call_here("report", run).out == said.out


def search_on(out: Path, *devices: str) -> Said:
    budget = ("--first", "4", "--max-queries", "150", "--shrink", "0", "--fail-on", "none")
    named = (word for device in devices for word in ("--device", device))
    return completed("search", EXAMPLE, *budget, "--out", out, *named)


def entries(out: Path) -> dict[int, tuple[str, str, dict[str, int]]]:
    document = document_of(out)
    return {
        entry["seed_id"]: (entry["device"], entry["sha256"], entry["labels"])
        for entry in (*document["findings"], *document["deviating_seeds"])
    }


def test_two_kinds_of_devices_share_the_seeds(tmp_path: Path) -> None:
    names = ("emulated-builtin", "emulated-reference")
    alone: list[dict[int, tuple[str, str, dict[str, int]]]] = []
    for name in names:
        search_on(tmp_path / name, name)
        alone.append(entries(tmp_path / name))

    said = search_on(tmp_path / "both", *names)

    both = entries(tmp_path / "both")
    assert both == {
        seed_id: entry
        for k, found in enumerate(alone)
        for seed_id, entry in found.items()
        if seed_id % 2 == k
    }
    assert {name for name, _, _ in both.values()} == set(names)
    devices = document_of(tmp_path / "both")["devices"]
    assert [device["name"] for device in devices] == list(names)
    assert [device["provenance"]["kernels"] for device in devices] == ["builtin", "reference"]
    assert all(name in said.out for name in names)


def test_an_emulated_device_is_started_as_often_as_it_is_named(tmp_path: Path) -> None:
    search_on(tmp_path / "one", "emulated-builtin")
    search_on(tmp_path / "two", "emulated-builtin", "emulated-builtin")

    one, two = entries(tmp_path / "one"), entries(tmp_path / "two")
    assert {i: entry[1:] for i, entry in one.items()} == {i: entry[1:] for i, entry in two.items()}
    assert {name for name, _, _ in two.values()} == {"emulated-builtin", "emulated-builtin#2"}


SHORT = ("--first", "8", "--max-queries", "40", "--shrink", "0", "--within", "none")


def warnings_of(run: Path) -> list[str]:
    document = document_of(run)
    assert document["stopped_by"] is None
    assert document["totals"]["queries"] <= 8 * 40
    warnings: list[str] = document["warnings"]
    return warnings


@pytest.mark.parametrize("strategy", ["boundary", "dflare"])
def test_the_same_model_on_the_same_kernels(strategy: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    same = ("--original", EXAMPLE / "compressed.tflite", "--device", "emulated-xnnpack")
    said = completed("search", EXAMPLE, *same, *SHORT, "--strategy", strategy, "--out", run)
    (line,) = warnings_of(run)
    assert line.startswith("nothing was found, and original and device gave equal outputs on all 8")
    assert "nothing was found" in said.out


def test_the_same_kernels_on_both_sides(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ("--device", "emulated-xnnpack", "--find", "kernel", "--ensemble", "xnnpack")
    completed("search", EXAMPLE, *SHORT, *options, "--out", run)
    (line,) = warnings_of(run)
    assert "twin and device gave equal outputs" in line
    assert "the same kernels?" in line


def test_a_pair_that_is_constant_says_so_and_ends(constant: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    completed(
        "search", EXAMPLE, "--compressed", constant, "--original", constant, *SHORT, "--out", run
    )
    lines = warnings_of(run)
    assert "the original's outputs hardly vary" in lines[0]
    assert "the compressed model's outputs hardly vary" in lines[1]
    assert "gave equal outputs" in lines[-1]
