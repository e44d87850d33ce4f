"""Kinds of files that come from outside: one that is right, and commands that read it.

`run_case` calls the command in a fork of this process, on a copy of the folder in which one file is
changed, and tells whether that ended in a mistake, a signal or a hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import cv2
import numpy as np

from mutated_files import changed_file

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples" / "fashion_lenet4"

_MOST_SECONDS: Final = 300.0
"""After which a command is killed, on a busy machine; one that waits for as long is a hang."""

_MISTAKE: Final = "this is a mistake in edgeflare"


@dataclass(frozen=True)
class OutsideKind:
    """A kind of file.

    Attributes:
        make: makes a folder in which all is right.
        file: that is changed, relative to the folder.
        format: as `changed_file` takes it.
        commands: of which each case calls one: the arguments of `edgeflare`, or what is called in
            their place with the folder as the working directory.
        without: files that are taken away before, such as the document that a journal would not be
            asked beside.

    """

    make: Callable[[Path], None]
    file: str
    format: str
    commands: Sequence[Sequence[str] | Callable[[], object]]
    without: Sequence[str] = ()


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: its exit code, or minus the signal.
        said: the end of what it wrote to stderr.
        seconds: of processor time, of it and of its children.
        called: what was called.

    """

    code: int
    said: str
    seconds: float
    called: str

    def fault(self, usual: float) -> str:
        """Return "mistake", "signal" or "hang"; empty where it is none.

        Args:
            usual: seconds of processor time on the file that is right.

        """
        if self.code == -signal.SIGALRM or self.seconds > usual + 2:
            return "hang"
        if self.code < 0:
            return "signal"
        return "mistake" if _MISTAKE in self.said or "Traceback (most" in self.said else ""


def changed(kind: OutsideKind, data: bytes, seed: str, number: int) -> bytes:
    """Return the content of a file of a case: those of even numbers keep their format."""
    random = Random(f"{seed}/{number}")  # noqa: S311 - no secret
    return changed_file(data, kind.format, random, valid=number % 2 == 0)


def run_case(
    kind: OutsideKind, right: Path, place: Path, content: bytes | None, number: int
) -> Ended:
    """Call the command of a case.

    Args:
        kind: of the file.
        right: the folder in which all is right.
        place: of the copy, which is made anew.
        content: of the file that is changed; None for the one that is right.
        number: of the case, which says which command is called.

    """
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(right, place, symlinks=True)
    for name in kind.without:
        (place / name).unlink(missing_ok=True)
    if content is not None:
        (place / kind.file).write_bytes(content)
        for beside in ("-wal", "-shm"):
            (place / (kind.file + beside)).unlink(missing_ok=True)
    command = kind.commands[number // 2 % len(kind.commands)]
    errors = place.with_name(place.name + ".errors")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if (pid := os.fork()) == 0:
        _become(command, place, errors)
    code = _waited(pid)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    called = command.__name__ if callable(command) else " ".join(command)
    return Ended(code, errors.read_text(errors="replace")[-4000:], seconds, called)


def _waited(pid: int) -> int:
    """Wait for a process that leads a group, and end what is left of the group."""
    until = time.monotonic() + _MOST_SECONDS
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGALRM)
            until += 1e9
        time.sleep(0.002)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


def _become(command: Sequence[str] | Callable[[], object], place: Path, errors: Path) -> None:
    """Run the command in this process, which is a fork, and end it."""
    code = 70
    try:
        os.setsid()
        os.chdir(place)
        os.environ["HOME"] = os.environ["XDG_STATE_HOME"] = str(place.with_name("home"))
        for number, path in ((0, os.devnull), (1, os.devnull), (2, str(errors))):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, errors="replace") for number, mode in enumerate(("r", "w", "w"))
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        code = _called(command)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _called(command: Sequence[str] | Callable[[], object]) -> int:
    from edgeflare.cli import main  # noqa: PLC0415

    if callable(command):
        from edgeflare.errors import EdgeFlareError  # noqa: PLC0415

        try:
            code = command()
        except (EdgeFlareError, OSError) as error:
            sys.stderr.write(f"{error}\n"[:2000])
            return 2
        return code if isinstance(code, int) else 0
    sys.argv = ["edgeflare", *command]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def _pair(folder: Path) -> None:
    shutil.copytree(EXAMPLE, folder / "pair")
    (folder / "pair" / "pair.toml").write_text(
        'name = "lenet"\noriginal = "original.tflite"\ncompressed = "compressed.tflite"\n'
        'seeds = "seeds.npz"\nfold_shapes = false\noutputs = "auto"\n'
        f"classes = {[f'class {n}' for n in range(10)]}\n"
        'task = {name = "classification"}\n'
        '[preprocess]\nscale = 255.0\nmean = [0.0]\nstd = [1.0]\nresize = "none"\n'
        '[device.preprocess]\nrounding = "half-even"\n'
    )


def _profile(folder: Path) -> None:
    (folder / "device_profiles").mkdir(parents=True)
    (folder / "device_profiles" / "x.toml").write_text(
        'extends = "emulated-builtin"\ndescription = "one"\nkernels = "xnnpack"\nthreads = 2\n'
        "warmup = 1\ninput_timeout_seconds = 3.5\ncanary_every = 5\nlink_delay_ms = 1.5\n"
        'thermal_zones = ["cpu*"]\npause_above_celsius = 60\n'
    )


def _conditions(folder: Path) -> None:
    _pair(folder)
    (folder / "conditions.toml").write_text(
        '[[conditions]]\ncondition = "gaussian-noise"\nseverities = [1, 2]\nname = "grain"\n'
        '[[conditions]]\ncondition = "fog"\n'
    )


def _known(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "known.toml").write_text(
        '[[known]]\noperator = "ADD"\ntype = "float32"\nverdict = "device"\n'
        'symptom = "wrong values"\n'
        'condition = []\nreason = "known"\n'
    )


def _fleet(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fleet.toml").write_text(
        '[hosts.one]\naddress = "10.0.0.1"\ndevices = {phone = ["a", "b"], emulated-builtin = 3}\n'
        '[hosts.two]\naddress = "10.0.0.2"\ndevices = {phone = ["a"]}\n'
    )


def _read_fleet() -> None:
    from edgeflare.fleet.plan.fleet_file import read_fleet  # noqa: PLC0415

    str(read_fleet(Path("fleet.toml")).places(["phone", "emulated-builtin"]))


def _done(folder: Path, *arguments: str) -> None:
    """Run a command in a fork, with a folder as the working directory; it has to succeed."""
    errors = folder.with_name(f"{folder.name}.errors")
    if (pid := os.fork()) == 0:
        _become(arguments, folder, errors)
    if (code := _waited(pid)) not in (0, 1):
        raise AssertionError(f"{arguments} ended with {code}: {errors.read_text()[-2000:]}")


_DEVICE = ("--device", "emulated-builtin")
_SEARCH = ("search", "pair", "--first", "8", "--max-queries", "60", *_DEVICE, "--fail-on", "none")
_RUN = (*_SEARCH, "--ensemble", "reference", "--out", "run")
_PART = (*_SEARCH, "--strategy", "random", "--seed-ids")
_DONOR = (*_SEARCH, "--strategy", "donor")
_SURVEY = ("survey", "pair", "--limit", "40", *_DEVICE, "--device-queries", "60")
_NOISE = ("--conditions", "gaussian-noise", "--severities", "3", "--out", "survey")
_CONFORM = ("conform", "--ops", "ADD", "--dtype", "float32", *_DEVICE, "--out", "conform")


def _searched(folder: Path) -> None:
    _pair(folder)
    _done(folder, *_RUN)
    _done(folder, *_PART, "0:4", "--out", "low")
    _done(folder, *_PART, "4:8", "--out", "high")
    _done(folder, *_DONOR, "--screen-only", "--out", "screened")
    for name in ("run", "low", "high", "screened"):
        _checkpointed(folder / name / "run.db")


def _killed(folder: Path) -> None:
    """Copy what is left of a run on its way."""
    _pair(folder)
    run = folder / "run"
    if (pid := os.fork()) == 0:
        _become((*_RUN, "--max-queries", "2000"), folder, folder.with_name("killed.errors"))
    until = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < until and not _has_steps(run / "run.db"):
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    _checkpointed(run / "run.db")


def _has_steps(path: Path) -> bool:
    with contextlib.suppress(sqlite3.Error):
        if path.is_file():
            with contextlib.closing(sqlite3.connect(path)) as db:
                query = "SELECT count(*) FROM answers WHERE role = 'step'"
                return bool(db.execute(query).fetchone()[0] > 100)
    return False


def _checkpointed(path: Path) -> None:
    """Put all that is written ahead into the file itself."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _explained(folder: Path) -> None:
    _searched(folder)
    _done(folder, "explain", "run")


def _surveyed(folder: Path) -> None:
    _pair(folder)
    _done(folder, *_SURVEY, *_NOISE)
    shutil.copytree(folder / "survey", folder / "before")
    _checkpointed(folder / "survey" / "run.db")


def _conformed(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _done(folder, *_CONFORM, "--models", "6")
    _checkpointed(folder / "conform" / "conform.db")


def _repaired(folder: Path) -> None:
    (folder / "repair").mkdir(parents=True)
    shutil.copy(
        Path(__file__).resolve().parents[1] / "repair" / "shifts" / "repair_v1.json",
        folder / "repair" / "repair.json",
    )


def _stored(folder: Path) -> None:
    (folder / "candidates").mkdir(parents=True)
    (folder / "candidates" / "about.json").write_text(_ABOUT)
    (folder / "candidates" / "weights.json").write_text(
        '[{"tried": {"name": "one", "seconds": 1.5, "size": null, "details": {"why": [1]}}}]'
    )


def _read_candidates() -> None:
    from edgeflare.repair.stored_candidates import StoredCandidates  # noqa: PLC0415

    about = json.loads(_ABOUT)
    StoredCandidates(Path(), about, resume=True).read("weights")


_ABOUT = (
    '{"pair": "lenet", "models": {"original": "ab", "compressed": "cd"}, "most": [1, 2.5, null]}'
)


def _fleet_folder(folder: Path) -> None:
    from edgeflare.fleet.record.fleet_state import (  # noqa: PLC0415
        AttemptState,
        FleetState,
        PlaceState,
        UnitState,
    )

    place = folder / "run.fleet"
    (place / "done").mkdir(parents=True)
    (place / "units" / "0001").mkdir(parents=True)
    attempts = [
        AttemptState(1, "one", "phone", 0.5, 2.0, "exit code 3"),
        AttemptState(2, "a", "b", 3),
    ]
    units = [UnitState("0001", "phone", "0:5", 5, "running", 3, 1, attempts)]
    places = [PlaceState("phone on one", "one", "0001", 1, 4.5), PlaceState("b on a", "a")]
    state = FleetState("ab" * 32, 10.0, units, places, ["one"], False, 1)
    (place / "fleet.json").write_text(json.dumps(state.to_json()))
    (place / "campaign").write_text("ab" * 32)
    (place / "units.txt").write_text("0001 0:5\n0002 5:9,12\n")
    (place / "done" / "0001.json").write_text(
        '{"exit_code": 0, "found": 1, "printed": "one\\ntwo"}'
    )
    (place / "output").write_text('{"run": {"replaced": "ab", "made": "cd"}}')


def _read_fleet_folder() -> None:
    from edgeflare.fleet.record.fleet_folder import FleetFolder  # noqa: PLC0415

    fleet = FleetFolder(Path("run.fleet"))
    for name in fleet.kept_parts() or {}:
        fleet.ending(name)
        fleet.backup(name)
    str(fleet.drained(["one"]))
    fleet.attempts_before()
    fleet.output.is_made(Path("run"))


def _lists(folder: Path) -> None:
    _pair(folder)
    (folder / "ids.txt").write_text("0:4, 6\n7:9 # some\n12\n")
    (folder / "tokens").mkdir()
    for number in range(3):
        (folder / "tokens" / f"{number}.json").write_text("[1, 2, 3, 4, 5, 6]")
        (folder / "tokens" / f"{number}.png").write_bytes(b"")
    (folder / "tokens" / "groups.csv").write_text("name,who\n0.png,a\n1.png,b\n2.png,a\n")


def _read_groups() -> None:
    from edgeflare.survey.items.group_table import groups_of_files  # noqa: PLC0415

    groups_of_files(Path("tokens"), [f"{number}.png" for number in range(3)], "who")


def _read_tokens() -> None:
    from edgeflare.domains.tokens.token_seeds import load_token_seeds  # noqa: PLC0415

    load_token_seeds(Path("tokens"), 100, 6)


_DRY = ("search", "pair", "--limit", "4", *_DEVICE, "--dry-run")
_SOME_SEEDS = (
    "search",
    "pair",
    "--strategy",
    "random",
    *_DEVICE,
    "--dry-run",
    "--seed-ids",
    "ids.txt",
)
_REPORTS = [("report", "run"), ("report", "run", "--json"), ("report", "run", "--csv", "--junit")]
_OTHERS = [("compare", "run", "low"), ("export", "run", "0", "--out", "x.zip")]


def _images(suffix: str, *quality: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        _pair(folder)
        (folder / "images").mkdir()
        with np.load(folder / "pair" / "seeds.npz") as seeds:
            for at in range(3):
                written = cv2.imencode(suffix, seeds["images"][at], quality)[1].tobytes()
                (folder / "images" / f"{at}{suffix}").write_bytes(written)

    make.__name__ = f"images-{suffix[1:]}"
    return make


def _arrays(folder: Path) -> None:
    """A pair whose model takes arrays, a folder of them, and an archive."""
    _pair(folder)
    with np.load(folder / "pair" / "seeds.npz") as seeds:
        arrays = seeds["images"][:4].astype(np.float32).reshape(4, 28, 28)
        np.savez(folder / "seeds.npz", images=seeds["images"][:40], labels=seeds["labels"][:40])
    (folder / "arrays").mkdir()
    for at, one in enumerate(arrays):
        np.save(folder / "arrays" / f"{at}.npy", one)
    (folder / "arrays.toml").write_text(
        'original = "pair/original.tflite"\ncompressed = "pair/compressed.tflite"\n'
        'seeds = "arrays"\n[inputs.array]\ndomain = "array"\nlowest = 0\nhighest = 255\n'
    )


def _sounds(folder: Path) -> None:
    import soundfile  # noqa: PLC0415 - of an extra

    shutil.copytree(EXAMPLE.with_name("spoken_words"), folder / "pair")
    with np.load(folder / "pair" / "seeds.npz") as seeds:
        wave = seeds["waves"][0]
    for suffix in ("wav", "flac"):
        (folder / suffix).mkdir()
        soundfile.write(folder / suffix / f"one.{suffix}", wave, 8000, subtype="PCM_16")


def _survey(*arguments: str) -> Sequence[str]:
    chosen = ("--conditions", "gaussian-noise", "--device", "emulated-builtin", "--dry-run")
    return ("survey", "pair", *arguments, *chosen)


def _few_seeds(folder: Path) -> None:
    """A pair with a few more seeds than a repair needs."""
    _pair(folder)
    with np.load(folder / "pair" / "seeds.npz") as seeds:
        few = {name: seeds[name][:60] for name in seeds.files}
    np.savez(folder / "pair" / "seeds.npz", **few)


def _search_and_explain() -> int:
    """Explain a run that a stranger may have made of the pair."""
    return _called(_BEFORE) or _called(("explain", "run"))


def _search_and_inspect() -> int:
    """Inspect a run that a stranger may have made of the pair."""
    return _called(_BEFORE) or _called(("inspect", "run", "--inputs", "80"))


_ON_IMAGES = (*_DRY, "--seeds", "images", "--resize", "stretch")
_SEARCH_OF_MODEL = ("search", "pair", "--limit", "2", "--device", "emulated-builtin")
_BEFORE = (
    *(*_SEARCH_OF_MODEL, "--max-queries", "10", "--shrink", "0"),
    *("--fail-on", "none", "--out", "run"),
)
_ON_GPU = (
    *("search", "pair", "--device", "emulated-gpu", "--fold-shapes", "--limit", "1"),
    *("--max-queries", "10", "--within", "none", "--shrink", "0", "--fail-on", "none"),
    *("--out", "run"),
)
_OF_REPAIR = (
    ("repair", "pair", "--method", "bias", "--out", "repaired"),
    ("repair", "pair", "--method", "ranges", "--in-place", "--out", "repaired"),
)
_OF_MODEL = (
    (*_SEARCH_OF_MODEL, "--dry-run"),
    (*_SEARCH_OF_MODEL, "--dry-run", "--fold-shapes"),
    (*_SEARCH_OF_MODEL, "--max-queries", "20", "--fail-on", "none", "--out", "run"),
    ("conform", "--from", "pair/compressed.tflite", "--device", "emulated-builtin", "--dry-run"),
    _survey("--limit", "30"),
)

KINDS: Final[Mapping[str, OutsideKind]] = {
    "pair.toml": OutsideKind(_pair, "pair/pair.toml", "toml", [_DRY]),
    "profile": OutsideKind(
        _profile,
        "device_profiles/x.toml",
        "toml",
        [("devices", "list"), ("devices", "show", "x"), ("doctor",)],
    ),
    "conditions": OutsideKind(
        _conditions,
        "conditions.toml",
        "toml",
        [
            (
                "survey",
                "pair",
                "--limit",
                "40",
                "--conditions",
                "conditions.toml",
                "--dry-run",
                "--device",
                "emulated-builtin",
            )
        ],
    ),
    "known": OutsideKind(
        _known,
        "known.toml",
        "toml",
        [
            (
                "conform",
                "--known",
                "known.toml",
                "--ops",
                "ADD",
                "--dtype",
                "float32",
                "--dry-run",
                "--device",
                "emulated-builtin",
            )
        ],
    ),
    "fleet.toml": OutsideKind(_fleet, "fleet.toml", "toml", [_read_fleet]),
    "run.json": OutsideKind(
        _searched, "run/run.json", "json", [*_REPORTS, *_OTHERS, ("report", "run", "--html")]
    ),
    "run.db, report": OutsideKind(_searched, "run/run.db", "journal", _REPORTS, ["run/run.json"]),
    "run.db, resume": OutsideKind(
        _killed,
        "run/run.db",
        "journal",
        [(*_RUN, "--max-queries", "2000", "--resume"), ("report", "run")],
    ),
    "run.db, ended": OutsideKind(_searched, "run/run.db", "journal", [(*_RUN, "--resume")]),
    "run.db, merge": OutsideKind(
        _searched, "low/run.db", "journal", [("merge", "low", "high", "--out", "both")]
    ),
    "run.db, screening": OutsideKind(
        _searched,
        "screened/run.db",
        "journal",
        [(*_DONOR, "--seed-ids", "0:2", "--screening", "screened", "--out", "new")],
    ),
    "run.db, replay": OutsideKind(
        _searched,
        "run/run.db",
        "journal",
        [("replay", "run", *_DEVICE, "--out", "new")],
    ),
    "explain.json": OutsideKind(
        _explained,
        "run/explain.json",
        "json",
        [
            ("report", "run"),
            ("report", "run", "--summary"),
            ("export", "run", "0", "--out", "x.zip"),
        ],
    ),
    "survey.json": OutsideKind(
        _surveyed,
        "survey/survey.json",
        "json",
        [
            ("report", "survey"),
            ("report", "survey", "--csv", "--junit"),
            ("report", "survey", "--html"),
        ],
    ),
    "run.db, survey": OutsideKind(
        _surveyed,
        "survey/run.db",
        "journal",
        [("report", "survey"), (*_SURVEY, *_NOISE, "--resume")],
        ["survey/survey.json"],
    ),
    "run.db, baseline": OutsideKind(
        _surveyed,
        "before/run.db",
        "journal",
        [(*_SURVEY, *_NOISE[:-1], "new", "--baseline", "before", "--dry-run")],
    ),
    "conform.json": OutsideKind(
        _conformed,
        "conform/conform.json",
        "json",
        [("report", "conform"), ("report", "conform", "--json"), ("report", "conform", "--html")],
    ),
    "conform.db": OutsideKind(
        _conformed,
        "conform/conform.db",
        "journal",
        [(*_CONFORM, "--models", "6", "--resume")],
        ["conform/conform.json"],
    ),
    "repair.json": OutsideKind(
        _repaired,
        "repair/repair.json",
        "json",
        [("report", "repair"), ("report", "repair", "--html")],
    ),
    "about.json": OutsideKind(_stored, "candidates/about.json", "json", [_read_candidates]),
    "candidates": OutsideKind(_stored, "candidates/weights.json", "json", [_read_candidates]),
    "fleet.json": OutsideKind(
        _fleet_folder,
        "run.fleet/fleet.json",
        "json",
        [("fleet", "status", "run"), ("fleet", "status", "run", "--json"), _read_fleet_folder],
    ),
    "units.txt": OutsideKind(_fleet_folder, "run.fleet/units.txt", "table", [_read_fleet_folder]),
    "done unit": OutsideKind(
        _fleet_folder, "run.fleet/done/0001.json", "json", [_read_fleet_folder]
    ),
    "fleet's output": OutsideKind(_fleet_folder, "run.fleet/output", "json", [_read_fleet_folder]),
    "seed ids": OutsideKind(_lists, "ids.txt", "table", [_SOME_SEEDS]),
    "groups.csv": OutsideKind(_lists, "tokens/groups.csv", "table", [_read_groups]),
    "tokens": OutsideKind(_lists, "tokens/1.json", "json", [_read_tokens]),
    **{
        name: OutsideKind(_images(suffix, *quality), f"images/1{suffix}", name, [_ON_IMAGES])
        for name, suffix, quality in (
            ("png", ".png", ()),
            ("jpeg", ".jpg", ()),
            ("bmp", ".bmp", ()),
            ("webp", ".webp", (cv2.IMWRITE_WEBP_QUALITY, 90)),
            ("tiff", ".tif", ()),
            ("pnm", ".pgm", ()),
        )
    },
    "npy": OutsideKind(
        _arrays,
        "arrays/1.npy",
        "npy",
        [("search", "arrays.toml", "--device", "emulated-builtin", "--dry-run")],
    ),
    "npz": OutsideKind(
        _arrays,
        "seeds.npz",
        "npz",
        [(*_DRY, "--seeds", "seeds.npz"), _survey("--inputs", "seeds.npz", "--groups", "labels")],
    ),
    "wav": OutsideKind(_sounds, "wav/one.wav", "wav", [(*_DRY, "--seeds", "wav")]),
    "flac": OutsideKind(_sounds, "flac/one.flac", "flac", [(*_DRY, "--seeds", "flac")]),
    "tflite": OutsideKind(_pair, "pair/compressed.tflite", "tflite", _OF_MODEL),
    "original": OutsideKind(_pair, "pair/original.tflite", "tflite", _OF_MODEL),
    "model on a GPU": OutsideKind(_pair, "pair/compressed.tflite", "tflite", [_ON_GPU]),
    "explained model": OutsideKind(
        _pair, "pair/compressed.tflite", "tflite", [_search_and_explain]
    ),
    "inspected model": OutsideKind(
        _pair, "pair/compressed.tflite", "tflite", [_search_and_inspect]
    ),
    "inspected original": OutsideKind(
        _pair, "pair/original.tflite", "tflite", [_search_and_explain, _search_and_inspect]
    ),
    "repaired model": OutsideKind(_few_seeds, "pair/compressed.tflite", "tflite", _OF_REPAIR),
    "repaired original": OutsideKind(_few_seeds, "pair/original.tflite", "tflite", _OF_REPAIR),
}
"""By its name. Another kind is another row."""
