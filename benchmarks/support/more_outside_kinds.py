"""Kinds of files from outside of which it takes long to make one, or to read it.

Pairs, their models and inputs, and runs with all that stands beside them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import cv2
import numpy as np

from outside_kinds import MOST_SECONDS, OutsideKind, become_command, call_command, wait_for_group

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "examples" / "fashion_lenet4"


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


def _conditions(folder: Path) -> None:
    _pair(folder)
    (folder / "conditions.toml").write_text(
        '[[conditions]]\ncondition = "gaussian-noise"\nseverities = [1, 2]\nname = "grain"\n'
        '[[conditions]]\ncondition = "fog"\n'
    )


def _known(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "accepted.toml").write_text(
        '[[accepted]]\noperator = "ADD"\ntype = "float32"\nverdict = "device"\n'
        'symptom = "wrong-values"\n'
        'condition = []\nreason = "known"\n'
    )


def _done(folder: Path, *arguments: str) -> None:
    """Run a command in a fork, with a folder as the working directory; it has to succeed."""
    errors = folder.with_name(f"{folder.name}.errors")
    if (pid := os.fork()) == 0:
        become_command(arguments, folder, errors)
    if (code := wait_for_group(pid)) not in (0, 1):
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
        become_command((*_RUN, "--max-queries", "2000"), folder, folder.with_name("killed.errors"))
    until = time.monotonic() + MOST_SECONDS
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


def _seed_ids(folder: Path) -> None:
    _pair(folder)
    (folder / "ids.txt").write_text("0:4, 6\n7:9 # some\n12\n")


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
    """Make a pair whose model takes arrays, a folder of them, and an archive."""
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
    """Make a pair with a few more seeds than a repair needs."""
    _pair(folder)
    with np.load(folder / "pair" / "seeds.npz") as seeds:
        few = {name: seeds[name][:60] for name in seeds.files}
    np.savez(folder / "pair" / "seeds.npz", **few)


def _search_and_explain() -> int:
    """Explain a run that a stranger may have made of the pair."""
    return call_command(_BEFORE) or call_command(("explain", "run"))


def _search_and_inspect() -> int:
    """Inspect a run that a stranger may have made of the pair."""
    return call_command(_BEFORE) or call_command(("inspect", "run", "--max-inputs", "80"))


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
    ("repair", "pair", "--method", "ranges", "--out", "repaired"),
    ("repair", "pair", "--method", "ranges", "--in-place", "--out", "repaired"),
)
_OF_MODEL = (
    (*_SEARCH_OF_MODEL, "--dry-run"),
    (*_SEARCH_OF_MODEL, "--dry-run", "--fold-shapes"),
    (*_SEARCH_OF_MODEL, "--max-queries", "20", "--fail-on", "none", "--out", "run"),
    ("conform", "--from", "pair/compressed.tflite", "--device", "emulated-builtin", "--dry-run"),
    _survey("--limit", "30"),
)

MORE_KINDS: Final[Mapping[str, OutsideKind]] = {
    "pair.toml": OutsideKind(_pair, "pair/pair.toml", "toml", [_DRY]),
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
        "accepted.toml",
        "toml",
        [
            (
                "conform",
                "--accepted",
                "accepted.toml",
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
        _searched, "run/run.db", "journal", [("replay", "run", *_DEVICE, "--out", "new")]
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
    "seed ids": OutsideKind(_seed_ids, "ids.txt", "table", [_SOME_SEEDS]),
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
