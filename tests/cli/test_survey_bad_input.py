"""What bad input of a survey gets: one line that says what was wrong, exit 2, nothing written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.journal import Journal

BAD: dict[str, tuple[str, tuple[str, ...]]] = {
    # {w} is the pair of words, {m} the folder of mistakes.
    "another domain's condition": (
        "{w} --conditions flicker",
        ("--conditions flicker", "of the domain frames, not of audio"),
    ),
    "unknown condition": (
        "{w} --conditions whit-noise",
        ("--conditions whit-noise", "white-noise"),
    ),
    "severity 6": ("{w} --severities 6", ("--severities 6", "from 1 to 5")),
    "severity 0": ("{w} --severities 0-3", ("--severities 0-3", "from 1 to 5")),
    "severities of no condition": (
        "{w} --conditions none --severities 3",
        ("--severities 3", "with --conditions none", "leave one of them out"),
    ),
    "no gate": ("{w} --gate fast", ("--gate 'fast'", "rate<0.01")),
    "no measure": ("{w} --gate speed<0.1", ("no measure is called 'speed'",)),
    "gate twice": ("{w} --gate rate<0.1 --gate rate<10%", ("--gate 'rate<10%': is given twice",)),
    "gate without labels": (
        "{w} --inputs {m}/unlabelled.npz --gate accuracy-drop<0.01",
        ("needs to know who is right", "give --inputs"),
    ),
    "gate without groups": (
        "{w} --gate rate<0.01\u00a0for\u00a0group\u00a0old",
        ("needs groups", "--groups"),
    ),
    "gate of what is not surveyed": (
        "{w} --conditions none --gate rate<0.01\u00a0under\u00a0white-noise",
        ("'white-noise' is not surveyed",),
    ),
    "few inputs": (
        "{w} --inputs {m}/few.npz",
        ("gives 12 inputs, too few for a rate", "up to 26% still could", "--inputs"),
    ),
    "few by a limit": ("{w} --limit 29", ("gives 29 inputs", "up to 12% still could")),
    "no inputs": (
        "{w} --inputs {m}/absent.npz",
        ("--inputs: there are no inputs at", "absent.npz"),
    ),
    "no inputs to show": (
        "{w} --inputs {m}/absent.npz --show sheet.html",
        ("--inputs: there are no inputs at",),
    ),
    "no pair there": (
        "{m}/nothing",
        ("no pair folder", "or --original, --compressed and --inputs"),
    ),
    "no column": ("{w} --groups skin", ("--groups skin", "no column of that name")),
    "float groups": ("{w} --inputs {m}/groups.npz --groups weight", ("float64", "a string or an")),
    "one group": (
        "{w} --inputs {m}/groups.npz --groups same",
        ("all have one value in it", "2 to 100"),
    ),
    "rare events without conditions": (
        "{w} --conditions none --rare",
        ("looked for under conditions", "--conditions"),
    ),
    "queries for no rare events": ("{w} --rare-queries 500", ("--rare-queries 500", "add --rare")),
    "few for rare events": ("{w} --rare --rare-queries 9", ("--rare-queries", "100 or more")),
    "no time": ("{w} --time-limit 0", ("--time-limit 0", "above 0")),
    "no pair": ("", ("name a pair", "--compressed and --inputs")),
    "show in no page": ("{w} --show sheet.pdf", ("--show sheet.pdf", ".html")),
    "show in no folder": (
        "{w} --show {m}/nothing/sheet.html",
        ("--show", "there is no folder", "nothing: make it before"),
    ),
    "show in a folder of too long a name": (
        f"{{w}} --show {{m}}/{'a' * 300}/sheet.html",
        ("--show", "there is no folder", "make it before"),
    ),
    "show in too long a name": (
        f"{{w}} --conditions quiet --show {{m}}/{'a' * 300}.html",
        ("--show", "cannot be written: File name too long"),
    ),
    "show in a folder itself": (
        "{w} --conditions quiet --overwrite --show {m}/folder.html",
        ("--show", "folder.html cannot be written: Is a directory"),
    ),
    "show of nothing": ("{w} --conditions none --show sheet.html", ("--show", "--conditions")),
    "no baseline": ("{w} --baseline {m}", ("is no run directory", "run.db")),
    "baseline that is not there": (
        "{w} --baseline {m}/nothing",
        ("there is no run directory", "check --baseline"),
    ),
    "resume without a run": ("{w} --resume", ("add --out RUN",)),
    "resume of nothing": (
        "{w} --resume --out {m}/nothing",
        ("there is no run directory", "leave out --resume to begin one"),
    ),
    "resume of nothing without a pair": ("--resume --out {m}/nothing", ("there is no run",)),
    "a folder of other things": ("{w} --out {m}", ("is neither empty nor a run",)),
    "unknown device": ("{w} --device emulated-bultin", ("emulated-builtin",)),
}


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory, words: Path) -> Path:
    """A folder of inputs that are not what they should be."""
    folder = tmp_path_factory.mktemp("mistaken")
    (folder / "folder.html").mkdir()
    with np.load(words / "seeds.npz") as arrays:
        known: dict[str, Any] = {name: arrays[name] for name in arrays}
    labels = known.pop("labels")
    count = len(labels)
    few: dict[str, Any] = {"waves": known["waves"][:12], "sample_rate": known["sample_rate"]}
    np.savez(folder / "few.npz", **few, labels=labels[:12])
    np.savez(folder / "unlabelled.npz", **known)
    known |= {"weight": np.linspace(0, 1, count), "same": np.ones(count, np.int64)}
    np.savez(folder / "groups.npz", **known)
    return folder


@pytest.fixture(scope="module")
def words(example: Path) -> Path:
    return example.parent / "spoken_words"


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_answered_by_one_line(
    case: str, mistaken: Path, words: Path, call: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    text, said = BAD[case]
    places = {"w": words, "m": mistaken}
    arguments = [one.replace("\u00a0", " ") for one in text.format(**places).split(" ") if one]
    answer = call("survey", *arguments)
    assert answer.code == 2, answer
    complaint = answer.complaint()
    for part in said:
        assert part in complaint
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_survey_is_gone_on_with_as_it_was_begun(words: Path, tmp_path: Path, call: Any) -> None:
    survey = ("survey", words, "--conditions", "none", "--device-queries", "40", "--findings", "0")
    out = ("--out", tmp_path / "run")
    assert call(*survey, *out).code == 0
    written = (tmp_path / "run" / "run.json").read_bytes()
    changed = call(*survey, "--confidence", "0.9", *out, "--resume")
    assert changed.code == 2
    assert "was begun with --confidence 0.95, not 0.9" in changed.complaint()
    seeded = call(*survey, "--rng-seed", "1", *out, "--resume")
    assert (seeded.code, "with --rng-seed 0, not 1" in seeded.complaint()) == (2, True)
    again = call(*survey, *out)
    assert (again.code, "holds a run already" in again.complaint()) == (2, True)
    assert (tmp_path / "run" / "run.json").read_bytes() == written
    with closing(Journal.open(tmp_path / "run" / "run.db")) as journal:
        assert journal.about()["stopped_by"] is None
    assert call(*survey, *out, "--resume").code == 0
    searched = call("search", words, *out, "--resume")
    said = "holds a survey, and no search: `edgeflare survey` goes on with it"
    assert (searched.code, said in searched.complaint()) == (2, True)


@pytest.mark.slow
def test_a_name_of_a_file_has_to_stand_for_what_it_stood_for(
    words: Path, tmp_path: Path, call: Any
) -> None:
    file, run = tmp_path / "field.toml", tmp_path / "run"
    table = '[[conditions]]\ncondition = "{}"\nname = "cheap"\nseverities = [2]\n'
    file.write_text(table.format("quiet"))
    short = ("--first", "30", "--device-queries", "20", "--findings", "0")
    survey = ("survey", words, "--conditions", file, *short)
    assert call(*survey, "--out", run).code == 0
    file.write_text(table.format("narrow-band"))
    for name in ("survey.csv", "junit.xml"):
        write_atomically(run / name, b"of before")
    resumed = call(*survey, "--out", run, "--resume")
    said = "was begun with --conditions cheap (quiet), not cheap (narrow-band)"
    assert (resumed.code, said in resumed.complaint()) == (2, True)
    compared = call(*survey, "--out", tmp_path / "now", "--baseline", run)
    said = f"the baseline {run} has other inputs under 'cheap' at severity 2"
    assert (compared.code, said in compared.complaint()) == (2, True)
    file.write_text(table.format("quiet"))
    other = call(*survey, "--out", run, "--resume", "--baseline", run)
    assert (
        other.code,
        "was begun without --baseline, not with --baseline" in other.complaint(),
    ) == (2, True)
    assert (run / "survey.csv").exists()
    assert call(*survey, "--out", run, "--resume").code == 0
    assert not list(run.glob("*.csv")) + list(run.glob("*.xml"))


@pytest.mark.slow
def test_a_search_is_no_survey(finished: Any, words: Path, call: Any) -> None:
    said = call("survey", words, "--out", finished.folder, "--resume")
    assert (said.code, "is no survey, but a search" in said.complaint()) == (2, True)
    said = call("survey", words, "--baseline", finished.folder)
    assert (said.code, said.complaint()) == (
        2,
        f"{finished.folder} is no survey, but a search: name a run of `edgeflare survey` with"
        " --baseline",
    )
