"""What bad input gets: one line that says what was wrong, exit 2 or 3, and nothing written."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
import pytest

from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.agent_pb2_grpc import AgentServicer, add_AgentServicer_to_server

LITERT = f"ai-edge-litert {version('ai-edge-litert')}"

BAD: dict[str, tuple[str, tuple[str, ...]]] = {
    # Models. {m} is the folder of mistakes, {e} the example pair.
    "no compressed": ("{e} --compressed {m}/absent.tflite", ("no model file", "absent.tflite")),
    "empty compressed": ("{e} --compressed {m}/empty.tflite", ("empty.tflite is empty",)),
    "truncated compressed": (
        "{e} --compressed {m}/truncated.tflite",
        ("truncated.tflite does not load, copy it", "its graph cannot be read"),
    ),
    "text compressed": ("{e} --compressed {m}/text.tflite", ("it is not a TFLite model",)),
    "folder compressed": ("{e} --compressed {m}/thesis", ("thesis is not a model file",)),
    "no original": ("{e} --original {m}/absent.tflite", ("no model file", "absent.tflite")),
    "empty original": ("{e} --original {m}/empty.tflite", ("empty.tflite is empty",)),
    "truncated original": (
        "{e} --original {m}/truncated.tflite",
        ("truncated.tflite does not load, copy it", "its graph cannot be read"),
    ),
    "no such module": ("{e} --original absent:model", ("importing absent failed",)),
    "no kind of original": (
        "{e} --original {e}/seeds.npz",
        ("seeds.npz' is no original model", "module:function"),
    ),
    "no original of any kind": (
        "{e} --original model.h5",
        ("there is no original model model.h5: give", "module:function"),
    ),
    "original misspelt": (
        "{e} --original {e}/orginal.tflite",
        ("no model file", "did you mean '{e}/original.tflite'"),
    ),
    "original of another ending": (
        "{e} --original {e}/original.h5",
        ("there is no original model", "did you mean '{e}/original.tflite'"),
    ),
    "compressed misspelt": (
        "{e} --compressed {e}/compresed.tflite",
        ("no model file", "did you mean '{e}/compressed.tflite'"),
    ),
    "several inputs": ("{e} --compressed {m}/two-inputs.tflite", ("has 2 inputs", "'mask'")),
    "an operator of the future": (
        "{e} --compressed {m}/future.tflite",
        (
            f"{LITERT} has no operator CONV_2D version 99",
            f"(the host; emulated-builtin has {LITERT})",
        ),
    ),
    # Seeds.
    "no seeds": ("{e} --seeds {m}/absent.npz", ("no seeds at", "absent.npz")),
    "seeds misspelt": (
        "{e} --seeds {e}/seds.npz",
        ("no seeds at", "did you mean '{e}/seeds.npz'"),
    ),
    "float seeds": ("{e} --seeds {m}/float.npz", ("float.npz: images are float32", "uint8")),
    "small seeds": ("{e} --seeds {m}/small.npz", ("(8, 8, 1)", "(28, 28, 1)", "resize")),
    "large images": ("{e} --seeds {m}/large-images", ("cat.png", "(40, 40, 1)", "(28, 28, 1)")),
    "nameless seeds": ("{e} --seeds {m}/nameless.npz", ("an array named images", "arr_0")),
    "no seed": ("{e} --seeds {m}/none.npz", ("none.npz: there are no images",)),
    "text seeds": ("{e} --seeds {m}/text.npz", ("text.npz: not an .npz",)),
    "folder without images": ("{e} --seeds {m}/no-images", ("no-images: the folder has no image",)),
    "folder of no images": ("{e} --seeds {m}/not-images", ("cat.png cannot be decoded",)),
    # Pairs.
    "no pair": ("", ("compressed is not given", "--compressed")),
    "no pair folder": ("{m}/absent", ("no pair folder", "absent")),
    "pair folder misspelt": ("{e}x", ("no pair folder", "did you mean '{e}'")),
    "no pair.toml": ("{m}/thesis", ("thesis holds no pair.toml",)),
    "no TOML": ("{m}/no-toml", ("pair.toml: is not valid TOML",)),
    "unknown key": ("{m}/unknown-key", ("unknown key clases", "'classes'")),
    "no preprocessing": ("{m}/no-preprocess", ("says nothing of scale, mean, std",)),
    "too many means": ("{m}/fewer-means", ("mean has 2 values", "1 channel")),
    "too many class names": ("{m}/eleven-classes", ("classes has 11 names", "10 classes")),
    "no original, no kernels": (
        "--compressed {e}/compressed.tflite --seeds {e}/seeds.npz",
        ("no original model", "--find kernel"),
    ),
    # Names and values.
    "unknown device": (
        "{e} --device emulated-bultin",
        ('unknown device "emulated-bultin"', 'mean "emulated-builtin"'),
    ),
    "no address": ("{e} --device grpc://nowhere", ("grpc://nowhere", "HOST:PORT")),
    "unknown strategy": (
        "{e} --strategy dflar",
        ("unknown strategy 'dflar'", "did you mean 'dflare'"),
    ),
    "bad find": ("{e} --find everything", ("--find", "'everything'", "'compression'")),
    "bad ties": ("{e} --ties maybe", ("--ties", "'maybe'", "'exclude'")),
    "bad mean": ("{e} --mean one", ("--mean 'one'", "0.49,0.48,0.45")),
    "infinite mean": ("{e} --mean inf", ("mean has to be finite",)),
    "bad bound": ("{e} --max-linf far", ("--max-linf far", "gray levels", "none")),
    "no bound at all": ("{e} --max-l2 0", ("--max-l2 0", "above 0", "none")),
    "unknown kernels": (
        "{e} --ensemble xnnpack,refrence",
        ("--ensemble", "refrence", "reference"),
    ),
    "kernels twice": ("{e} --ensemble builtin,builtin", ("builtin,builtin", "once")),
    "bad resize": ("{e} --resize squash", ("resize is 'squash'", "'stretch'")),
    "no queries": ("{e} --max-queries 0", ("--max-queries", "1")),
    "bad number": ("{e} --max-queries many", ("--max-queries",)),
    "bad rate": ("{e} --allow 2", ("--allow", "1")),
    "no time at all": ("{e} --total-time 0", ("--total-time", "above 0")),
    "no time for each": ("{e} --time-limit 0", ("--time-limit", "above 0")),
    "no queries at all": ("{e} --total-queries 0", ("--total-queries", "1")),
    "no number": ("{e} --time-limit nan", ("--time-limit",)),
    "unknown option": ("{e} --frobnicate", ("--frobnicate", "edgeflare search --help")),
    "no value": ("{e} --find", ("--find", "argument")),
    "too much": ("{e} {e}", ("unexpected extra argument",)),
    # Run directories.
    "resume what": ("{e} --resume", ("--resume", "add --out RUN")),
    "resume and overwrite": ("{e} --out o --resume --overwrite", ("--resume", "--overwrite")),
    "resume nothing": (
        "{e} --out {m}/absent --resume",
        ("there is no run directory", "absent: check the path"),
    ),
    "out is a file": ("{e} --out {m}/a-file", ("a-file is a file", "--out")),
    "out is below a file": ("{e} --out {m}/a-file/run", ("a-file/run", "Not a directory")),
    "out is not empty": ("{e} --out {m}/thesis --overwrite", ("thesis is neither empty nor",)),
}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def listing(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@pytest.mark.parametrize("mistake", BAD)
def test_one_line_and_nothing_written(
    mistake: str, call: Callable[..., Any], example: Path, mistakes: Path, tmp_path: Path
) -> None:
    text, words = BAD[mistake]
    arguments = [part.format(e=example, m=mistakes) for part in text.split()]
    before = listing(mistakes)

    said = call("search", *arguments)

    assert said.code == 2
    assert said.out == ""
    complaint = said.complaint()
    told = [word.format(e=example, m=mistakes) for word in words]
    assert all(word in complaint for word in told), complaint
    assert listing(tmp_path) == []
    assert listing(mistakes) == before


@pytest.mark.slow
def test_the_processes_themselves_say_no_more_than_their_line(
    start: Callable[..., Any], example: Path, mistakes: Path, tmp_path: Path
) -> None:
    for model in ("truncated", "future"):
        said = start("search", example, "--compressed", mistakes / f"{model}.tflite", cwd=tmp_path)
        assert said.code == 2
        assert model in said.complaint()
        assert said.out == ""
    assert listing(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "absent"), "there is no run directory absent: check the path"),
        (("devices", "show", "emulated-refrence"), 'mean "emulated-reference"'),
        (("serch",), "No such command 'serch'"),
    ],
)
def test_other_commands_complain_in_one_line_too(
    arguments: tuple[str, ...], words: str, call: Callable[..., Any]
) -> None:
    said = call(*arguments)
    assert said.code == 2
    assert words in said.complaint()


def test_an_agent_that_is_not_there(
    call: Callable[..., Any], example: Path, tmp_path: Path
) -> None:
    said = call("search", example, "--device", "grpc://127.0.0.1:1")
    assert said.code == 3
    assert "grpc://127.0.0.1:1: nobody is there" in said.complaint()
    assert "edgeflare agent serve" in said.complaint()
    assert listing(tmp_path) == []


def test_a_bad_model_is_told_of_before_an_absent_agent(
    call: Callable[..., Any], example: Path, mistakes: Path
) -> None:
    bad = ("--compressed", mistakes / "future.tflite")
    said = call("search", example, *bad, "--device", "grpc://127.0.0.1:1")
    assert said.code == 2
    assert "CONV_2D version 99" in said.complaint()
    assert "grpc://127.0.0.1:1 cannot be asked" in said.complaint()


class FromTheFuture(AgentServicer):
    """Speaks another major version."""

    def Describe(  # noqa: N802 - the wire's name
        self, _request: wire.DescribeRequest, _context: grpc.ServicerContext
    ) -> wire.DescribeReply:
        return wire.DescribeReply(protocol=wire.ProtocolVersion(major=7, minor=2))


@pytest.fixture
def future_agent() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    add_AgentServicer_to_server(FromTheFuture(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"grpc://127.0.0.1:{port}"
    server.stop(None).wait()


def test_an_agent_of_another_protocol_version(
    call: Callable[..., Any], example: Path, future_agent: str, tmp_path: Path
) -> None:
    said = call("search", example, "--device", future_agent)
    assert said.code == 3
    assert "another version of the protocol" in said.complaint()
    assert "it speaks 7.2" in said.complaint()
    assert listing(tmp_path) == []


@pytest.mark.old_board
def test_an_operator_that_only_the_device_lacks(
    call: Callable[..., Any],
    example: Path,
    newer_than_the_old_board: Path,
    old_board_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "device_profiles").mkdir()
    profile = f'transport = "emulated"\npython = "{old_board_python}"\n'
    (tmp_path / "device_profiles" / "old-board.toml").write_text(profile)
    arguments = ("--compressed", newer_than_the_old_board, "--device", "old-board", "--trust")
    monkeypatch.setenv("HOME", str(tmp_path))

    said = call("search", example, *arguments, "--out", tmp_path / "run")

    assert said.code == 2
    assert "old-board: tflite-runtime 2.14.0 has no operator " in said.complaint()
    assert f"(the host's {LITERT} takes it)" in said.complaint()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--rng-seed", "9"), "--rng-seed 0, not 9"),
        (("--strategy", "random"), "--strategy boundary, not random"),
        (("--first", "5"), "--first 6, not 5"),
        (
            ("--device", "emulated-reference"),
            "on a device with kernels builtin, but the one of now has reference",
        ),
        (("--ties", "include"), "--ties exclude, not include"),
    ],
)
def test_a_run_is_not_resumed_with_other_options(
    change: tuple[str, ...],
    words: str,
    call: Callable[..., Any],
    example: Path,
    finished: Any,
    small: tuple[str, ...],
) -> None:
    before = (finished.folder / "run.json").read_bytes()
    said = call("search", example, *small, *change, "--out", finished.folder, "--resume")
    assert said.code == 2
    assert words in said.complaint()
    assert (finished.folder / "run.json").read_bytes() == before


def test_a_run_is_not_resumed_with_another_pair(
    call: Callable[..., Any], mistakes: Path, finished: Any, small: tuple[str, ...]
) -> None:
    said = call("search", mistakes / "other", *small, "--out", finished.folder, "--resume")
    assert said.code == 2
    assert f"{finished.folder} belongs to another pair" in said.complaint()
    assert (finished.folder / "run.json").is_file()


def test_a_finished_run_is_not_written_over(
    call: Callable[..., Any], example: Path, finished: Any, small: tuple[str, ...]
) -> None:
    before = (finished.folder / "run.json").read_bytes()
    said = call("search", example, *small, "--out", finished.folder)
    assert said.code == 2
    assert "holds a run already" in said.complaint()
    assert "--overwrite" in said.complaint()
    assert (finished.folder / "run.json").read_bytes() == before


def test_a_run_that_was_killed_before_it_began_says_so(
    call: Callable[..., Any], example: Path, finished: Any, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.db").touch()
    said = call("report", run)
    assert said.code == 2
    assert "killed before it began: start anew with --overwrite" in said.complaint()


def test_a_damaged_document_or_journal_says_so(
    call: Callable[..., Any], finished: Any, tmp_path: Path
) -> None:
    shutil.copytree(finished.folder, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text("{")
    assert "run.json is damaged" in call("report", tmp_path / "run").complaint()
    (tmp_path / "run" / "run.json").unlink()
    (tmp_path / "run" / "run.db").write_text("no database, but some text that is long enough")
    assert "run.db is damaged" in call("report", tmp_path / "run").complaint()


@pytest.mark.parametrize("command", ["report", "replay", "explain", "compare"])
def test_a_run_directory_that_is_misspelt_is_told_its_name(
    command: str, call: Callable[..., Any], finished: Any
) -> None:
    said = call(command, f"{finished.folder}s")
    assert said.code == 2
    assert said.complaint() == (
        f"there is no run directory {finished.folder}s (did you mean '{finished.folder}'?): "
        "check the path"
    )
