"""Documents and journals that were damaged on their way: one clear line, and never a traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from called_commands import EXAMPLE, SMALL, call_here, document_of, refused
from damaged_documents import VALUES, Place, damage, places
from repaired_example import BY_SHIFTS, repaired_example

__all__ = ["repaired_example"]

EXAMPLES = 25


@pytest.fixture(scope="module")
def run(finished: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without its journal, so that nothing but its document can be read."""
    folder = tmp_path_factory.mktemp("damaged") / "run"
    shutil.copytree(finished.folder, folder, ignore=shutil.ignore_patterns("run.db*"))
    return folder


@pytest.fixture(scope="module")
def whole(finished: Any) -> Any:
    return document_of(finished.folder)


def commands(run: Path, other: Path, seed_id: int) -> list[tuple[str | Path, ...]]:
    return [
        ("report", run),
        ("report", run, "--html", "--junit", "--csv", "--summary"),
        ("compare", run, other),
        ("compare", other, run, "--json"),
        ("explain", run),
        ("export", run, str(seed_id)),
        ("replay", run, "--out", run.parent / "replay"),
        ("repair", run, "--out", run.parent / "repair"),
    ]


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (("findings", 1, "strength"), float("nan"), "it holds NaN, which not every reader"),
        (("totals", "seeds"), 10**9, "totals.seeds is 1000000000: expected int <= 10000000"),
        (("plan",), {"a": {"b": {"c": {}}}}, "plan has no strategy"),
        (("findings", 0, "more"), 1, 'findings[0] has the unknown key "more"'),
        (("findings", 0, "device"), "other", "findings[0].device is 'other', but devices has none"),
        (("findings", 0, "labels", "twin"), 10, "labels.twin is 10, but twin has 10 probabilities"),
        (("classes", 0), "\ud800", "it holds text that is no Unicode"),
        (("findings", 0, "seed_file"), 1e300, "it holds 1e+300, which not every reader of JSON"),
    ],
)
def test_the_line_names_the_file_and_the_place(
    place: Place, value: Any, complaint: str, run: Path, whole: Any
) -> None:
    (run / "run.json").write_text(json.dumps(damage(whole, place, "put", value)))
    said = refused("report", run)
    assert said.startswith(f"{run / 'run.json'} is damaged: ")
    assert complaint in said


@pytest.fixture
def corrupt(finished: Any, tmp_path: Path) -> Path:
    """A run whose journal has a page that is no page any more."""
    folder = Path(shutil.copytree(finished.folder, tmp_path / "run"))
    with (folder / "run.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    return folder


@pytest.mark.parametrize("kept", [True, False])
def test_a_journal_that_is_corrupt_is_not_gone_on_with(kept: bool, corrupt: Path) -> None:
    if not kept:
        (corrupt / "run.json").unlink()
    other = corrupt.parent / "other"
    for command in (
        ("search", EXAMPLE, *SMALL, "--out", corrupt, "--resume"),
        ("replay", corrupt, "--out", other),
        ("replay", corrupt, "--out", corrupt.parent / "more", "--resume"),
        ("explain", corrupt),
        ("export", corrupt, "0"),
        ("repair", corrupt, "--out", other),
        *([] if kept else [("report", corrupt)]),
    ):
        line = refused(*command)
        assert line.startswith(f"{corrupt / 'run.db'} is damaged (")
        assert "start anew with --overwrite" in line
        assert ("run.json, which can still be shown" in line) == kept
    assert call_here("report", corrupt).code == (0 if kept else 2)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_document_that_is_damaged_anywhere_never_ends_in_a_traceback(
    data: st.DataObject, run: Path, whole: Any, finished: Any
) -> None:
    place = data.draw(st.sampled_from(list(places(whole))))
    how = data.draw(st.sampled_from(["put", "put", "put", "take", "add"]))
    value = data.draw(st.sampled_from(VALUES))
    damaged = damage(whole, place, how, value)
    (run / "run.json").write_text(json.dumps(damaged))
    known = commands(run, finished.folder, whole["findings"][0]["seed_id"])
    command = data.draw(st.sampled_from(known))
    said = call_here(*command)
    assert said.code in (0, 2), (command, said)
    if said.code == 2:
        assert str(run) in said.complaint()


@pytest.fixture(scope="module")
def repairs(repaired_example: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a repair, whose document tests write."""
    folder = tmp_path_factory.mktemp("damaged_repairs") / "repair"
    return Path(shutil.copytree(repaired_example, folder))


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_repair_that_is_damaged_anywhere_never_ends_in_a_traceback(
    data: st.DataObject, repaired_example: Path, repairs: Path
) -> None:
    by_fitting = document_of(repaired_example, "repair.json")
    document = data.draw(st.sampled_from([by_fitting, json.loads(BY_SHIFTS.read_bytes())]))
    # Most places are those of the provenance, which may be anything.
    known = [place for place in places(document) if "provenance" not in place[:-1]]
    how = data.draw(st.sampled_from(["put", "put", "put", "take", "add"]))
    place, value = data.draw(st.sampled_from(known)), data.draw(st.sampled_from(VALUES))
    (repairs / "repair.json").write_text(json.dumps(damage(document, place, how, value)))
    options = data.draw(st.sampled_from([(), ("--html",), ("--summary",), ("--json",)]))
    said = call_here("report", repairs, *options)
    assert said.code in (0, 2), (place, how, value, options, said)
    if said.code == 2:
        assert str(repairs) in said.complaint()


@pytest.mark.parametrize("name", ["../secret.png", "more/link.png"])
def test_no_file_outside_the_run_gets_into_the_page(
    name: str, run: Path, whole: Any, tmp_path: Path
) -> None:
    written = shutil.ignore_patterns("report.html")  # by the other tests
    folder = Path(shutil.copytree(run, tmp_path / "run", ignore=written))
    entry = whole["findings"][0]
    secret = tmp_path / "secret.png"
    shutil.copy(folder / entry["file"], secret)
    (folder / "link.png").symlink_to(secret)
    (folder / "more").symlink_to(folder)
    damaged = damage(whole, ("findings", 0, "file"), "put", name)
    (folder / "run.json").write_text(json.dumps(damaged))
    assert f"names {name!r}, which is outside of it" in refused("report", folder, "--html")
    assert not (folder / "report.html").exists()
