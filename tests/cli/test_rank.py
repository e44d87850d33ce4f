"""`edgeflare rank`, as a user types it."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from called_commands import EXAMPLE, call_here, completed, document_of, refused
from documents import as_json
from edgeflare.cli.rank import rank
from edgeflare.run.load_document import load_document
from edgeflare.run.plan import SHRINK
from edgeflare.run.run_directory import RunDirectory
from edgeflare.untrusted_text import for_markdown
from example_compressions import SEEDS, Models, make_models
from interrupted_commands import started

pytestmark = pytest.mark.slow

QUESTION = (
    *("--max-queries", "60", "--shrink", "20", "--chains", "8"),
    *("--device", "emulated-xnnpack"),
)
DEADLINE_SECONDS = 300.0


@dataclass(frozen=True)
class Asked:
    """A ranking that came to its end: what was asked, where it lies, and what was said."""

    models: Models
    options: tuple[str | Path, ...]
    out: Path
    said: Any

    @property
    def document(self) -> dict[str, Any]:
        return document_of(self.out, "rank.json")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("rank")
    models = make_models(folder)
    options = (
        *(EXAMPLE, "--seeds", folder / "seeds.npz", "--test", folder / "seeds.npz"),
        *("--compressed", folder / "dynamic.tflite", "--compressed", folder / "pruned85.tflite"),
        *QUESTION,
    )
    out = folder / "ranking"
    return Asked(models, options, out, call_here("rank", *options, "--out", out))


def test_the_broken_model_is_last_and_its_runs_are_ordinary_ones(asked: Asked) -> None:
    assert asked.said.code == 0, asked.said.err
    document = asked.document
    assert {one["name"] for one in document["models"]} == {"fashion_lenet4", "dynamic", "pruned85"}
    broken = document["models"][-1]
    assert broken["name"] == "pruned85"
    assert broken["rank"] == 3
    assert broken["mean_queries"]["value"] < document["models"][0]["mean_queries"]["value"]
    assert len(document["comparisons"]) == 3
    for one in document["models"]:
        (run,) = one["runs"]
        ran = load_document(RunDirectory(asked.out / run))
        document_of(asked.out / run)
        assert ran.strategy == document["strategy"] == "dflare-published"
        assert ran.totals.seeds == document["seeds"] == SEEDS
        assert one["area"]["value"] == pytest.approx(ran.nearness and ran.nearness.area)
        assert len(ran.deviating_seeds) == one["deviating_seeds"]
        deviating = {entry.seed_id for entry in ran.deviating_seeds}
        assert deviating.isdisjoint(document["shared_seeds"])


def test_the_figures_are_those_of_the_runs(asked: Asked) -> None:
    document = asked.document
    shared = set(document["shared_seeds"])
    for one in document["models"]:
        (run,) = one["runs"]
        findings = as_json(load_document(RunDirectory(asked.out / run)))["findings"]
        queries = {f["seed_id"]: f["queries"] for f in findings if f["seed_id"] in shared}
        needed = [queries.get(seed_id, 60) for seed_id in shared]
        assert one["mean_queries"]["value"] == pytest.approx(np.mean(needed))
        assert one["findings"] == len(queries)
        assert one["searches"] == len(shared)
        # The labelled set is the seeds here, so both accuracies are one.
        assert one["labelled"] == SEEDS
        assert one["labelled_accuracy"] == one["seed_accuracy"]
        assert one["labelled_deviation_rate"]["value"] == one["deviation_rate"]["value"]


def test_the_area_stands_beside_the_queries(asked: Asked) -> None:
    document = asked.document
    areas = {one["name"]: one["area"]["value"] for one in document["models"]}
    assert max(areas, key=areas.__getitem__) == "pruned85"
    for one in document["comparisons"]:
        difference = areas[one["first"]] - areas[one["second"]]
        assert one["area"]["difference"]["value"] == pytest.approx(difference)
        assert one["area"]["significant"] == (one["area"]["p_corrected"] < 0.05)
    assert any(line.startswith("Area, on all 12 seeds: ") for line in document["sentences"])
    # Queries count findings however far and however weak they are.
    plan = document["plan"]
    assert (plan["within_db"], plan["min_strength"], plan["shrink"]) == (None, 0.0, 20)


def test_without_shrinking_the_area_is_left_out_and_the_rest_is_the_same(
    asked: Asked, tmp_path: Path
) -> None:
    assert signature(rank).parameters["shrink"].default == SHRINK
    said = completed("rank", *asked.options, "--shrink", "0", "--out", tmp_path)
    document = document_of(tmp_path, "rank.json")
    assert "The area is left out: with --shrink 0" in " ".join(said.out.split())
    assert "| area |" in (asked.out / "rank.md").read_text()
    assert "| area |" not in (tmp_path / "rank.md").read_text()
    for one, before in zip(document["models"], asked.document["models"], strict=True):
        assert one["area"] is None
        for key in ("name", "rank", "mean_queries", "success_rate", "median_strength"):
            assert one[key] == before[key]
    for one, before in zip(document["comparisons"], asked.document["comparisons"], strict=True):
        assert one == {**before, "area": None}


def test_it_is_told_on_the_terminal_and_in_markdown(asked: Asked) -> None:
    document = asked.document
    markdown = (asked.out / "rank.md").read_text()
    for one in document["models"]:
        assert f"| {one['rank']} | {for_markdown(one['name'])} | " in markdown
    text = " ".join(asked.said.out.split())
    for sentence in document["sentences"]:
        assert for_markdown(sentence) in markdown
        assert sentence in text
    assert "pruned85" in document["sentences"][1]
    assert "measuring 3 of 3: pruned85" in asked.said.err
    assert "run 3 of at most 3: pruned85/dflare-published-0" in asked.said.err


def test_the_same_command_is_refused_or_resumed(asked: Asked) -> None:
    assert "go on with the ranking in it with --resume" in refused(
        "rank", *asked.options, "--out", asked.out
    )
    before = asked.document
    again = completed("rank", *asked.options, "--out", asked.out, "--resume")
    assert again.err == "", "nothing was left to do"
    assert asked.document == before
    changed = call_here(
        "rank", *asked.options, "--max-queries", "61", "--out", asked.out, "--resume"
    )
    assert changed.code == 2
    assert "was begun with --max-queries 60, not 61" in changed.err.splitlines()[-1]
    changed = call_here("rank", *asked.options, "--shrink", "21", "--out", asked.out, "--resume")
    assert changed.code == 2
    assert "was begun with --shrink 20, not 21" in changed.err.splitlines()[-1]


def test_a_dry_run_opens_everything_and_writes_nothing(asked: Asked, tmp_path: Path) -> None:
    said = completed("rank", *asked.options, "--out", tmp_path / "out", "--dry-run")
    assert f"pruned85: {SEEDS} seeds, opens on emulated-xnnpack" in said.out
    assert f"{SEEDS} labelled inputs" in said.out
    assert "would make 3 runs of dflare-published" in said.out
    assert not (tmp_path / "out").exists()


def test_a_device_that_is_not_there_is_no_mistake_of_the_user(asked: Asked, tmp_path: Path) -> None:
    lost = call_here(
        "rank", *asked.options, "--device", "grpc://127.0.0.1:9", "--out", tmp_path / "out"
    )
    assert lost.code == 3
    assert "the same command with --resume goes on" in lost.err.splitlines()[-1]


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_complete_and_the_same_command_goes_on(
    asked: Asked, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    # The first model is complete; the interruption comes in the middle of the second.
    for name in ("fashion_lenet4", "dynamic", "pruned85"):
        (out / name).mkdir(parents=True)
        shutil.copy(asked.out / name / "measured.json", out / name)
    shutil.copytree(
        asked.out / "fashion_lenet4" / "dflare-published-0",
        out / "fashion_lenet4" / "dflare-published-0",
    )
    command = ["rank", *map(str, asked.options), "--out", str(out), "--resume"]
    with started(*command) as process:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (out / "dynamic" / "dflare-published-0" / "run.db").exists():
            assert time.monotonic() < deadline, "the second search did not begin"
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "same command with --resume goes on" in err.splitlines()[-1]
    assert not (out / "rank.json").exists()

    rest = completed(*command)
    assert "fashion_lenet4/dflare-published-0" not in rest.err
    assert (out / "rank.json").read_bytes() == (asked.out / "rank.json").read_bytes()


@pytest.mark.slow
def test_one_seed_is_never_significant(asked: Asked, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = completed("rank", *asked.options, "--first", "1", "--out", out)
    document = document_of(out, "rank.json")
    assert not any(one["significant"] for one in document["comparisons"])
    assert {one["rank"] for one in document["models"]} == {1}
    assert "nothing can be significant" in " ".join(said.out.split())
