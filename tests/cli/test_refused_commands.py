"""What bad input gets: one line that says what was wrong, exit code 2, and nothing written.

What decides a refusal has tests of its own; here is what a command makes of it, and what only the
command line refuses.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from called_commands import EXAMPLE, EXAMPLES, SMALL, Said, refused
from conformed_runs import conformed_run
from tampering import edited

Call = Callable[..., Said]

LITERT = f"ai-edge-litert {version('ai-edge-litert')}"

SEARCHES: dict[str, str] = {
    # Behind `search`: what is said, whose parts stand between dots. {e} is the example pair,
    # {w} the one in sound, and {m} a folder of mistakes.
    "{e} --compressed {e}/compresed.tflite": "no model file … mean '{e}/compressed.tflite'",
    "{e} --compressed {m}/empty.tflite": "empty.tflite is empty",
    "{e} --compressed {m}/half.tflite": "half.tflite does not load … its graph cannot be read",
    "{e} --compressed {m}/text.tflite": "it is not a TFLite model",
    "{e} --compressed {m}": "is not a model file",
    "{e} --compressed {m}/two-inputs.tflite": "has 2 inputs … 'mask'",
    "{e} --compressed {m}/future.tflite": f"{LITERT} has no operator CONV_2D version 99 …"
    f" this is the host, which runs it too, and emulated-builtin has {LITERT}",
    "{e} --compressed {m}/future.tflite --device grpc://127.0.0.1:1": "CONV_2D version 99 …"
    " grpc://127.0.0.1:1 cannot be asked",
    "{e} --original {e}/seeds.npz": "seeds.npz' is no original model … module:function",
    "{e} --original {e}/original.h5": "no original model … did you mean '{e}/original.tflite'",
    "{e} --fold-shapes --compressed absent.tflite": "there is no model file absent.tflite",
    "{w} --fold-shapes": "compressed.tflite computes nothing from the shapes of its tensors",
    # Seeds and pairs.
    "{e} --seeds {e}/seds.npz": "no seeds at … did you mean '{e}/seeds.npz'",
    "{e} --seeds {m}/small.npz": "(8, 8, 1) … (28, 28, 1) … resize",
    "": "compressed is not given … --compressed",
    "{e}x": "no pair folder … did you mean '{e}'",
    "{m}": "holds no pair.toml",
    "{e} --mean 0,0": "mean has 2 values … 1 channel",
    "--compressed {e}/compressed.tflite --seeds {e}/seeds.npz": "no original model … --find kernel",
    "{e} --resize squash": "resize is 'squash' … 'stretch'",
    "{w} --preset unit": "preset … [inputs.NAME]",
    "{w} --operators gaussian-blur": "no audio operator is named 'gaussian-blur' … time-stretch",
    # Names and values.
    "{e} --device emulated-bultin": 'unknown device "emulated-bultin" … "emulated-builtin"',
    "{e} --device grpc://nowhere": "grpc://nowhere … HOST:PORT",
    "{e} --device grpc://127.0.0.1:1 --device grpc://127.0.0.1:1": "is named twice",
    "{e} --strategy dflar": "unknown strategy 'dflar' … did you mean 'dflare'",
    "{e} --strategy dflare --operators pixel-change": "dflare cannot draw from chosen operators",
    "{e} --set first_lep=4": "boundary has no parameter 'first_lep' (did you mean 'first_leap'?)",
    "{e} --set first_leap=0": "first_leap=0: expected a whole number, at least 1",
    "{e} --set first_leap": "--set first_leap: expected NAME=VALUE",
    "{e} --strategy deepxplore --set constraint=fog": "one of light, occl, blackout, none",
    "{e} --find everything": "--find … 'everything' … 'compression'",
    "{e} --mean one": "--mean 'one' … 0.49,0.48,0.45",
    "{e} --mean inf": "mean has to be finite",
    "{e} --max-linf far": "--max-linf far … gray levels … none",
    "{e} --max-l2 0": "--max-l2 0 … above 0 … none",
    "{e} --ensemble xnnpack,refrence": "--ensemble … refrence … reference",
    "{e} --ensemble builtin,builtin": "builtin,builtin … once",
    "{e} --ensemble xnnpack,builtin@/no/python": "builtin@/no/python: there is no program",
    "{e} --ensemble xnnpack,neon@python3": "neon@python3: there is no kernel set 'neon'",
    "{e} --ensemble builtin@python3,xnnpack": "the first is the twin's own",
    "{e} --coverage=1": "--coverage '1': expected thresholds from 0 to below 1",
    "{e} --coverage=nan": "--coverage 'nan': expected",
    "{e} --coverage=.5,high": "--coverage 'high': expected",
    "{e} --coverage=.5,,.6": "--coverage '.5,,.6': expected values separated by commas",
    "{e} --coverage=0,0,0,0,0,0,0,0,0,0,0": "has 11 thresholds: give 10 at most",
    "{e} --max-queries 0": "--max-queries … expected 1 or more",
    "{e} --max-queries many": "--max-queries … expected a whole number",
    "{e} --shrink -1": "--shrink",
    "{e} --allow 2": "--allow … expected 1 or less",
    "{e} --time-limit 0": "--time-limit … above 0",
    "{e} --max-time nan": "--max-time",
    "{e} --json": "--json: `edgeflare report RUN --json` prints what",
    "{e} --frobnicate": "--frobnicate … edgeflare search --help",
    "{e} --find": "--find … argument",
    "{e} {e}": "unexpected extra argument",
    "{e} --limit 3 --first 3": "give one of them",
    # Where a run lies, and what is searched of it.
    "{e} --resume": "--resume … add --out RUN",
    "{e} --out {m}/absent --resume": "there is no run directory … absent: check the path",
    "{e} --out {m}/text.tflite": "text.tflite is a file … --out",
    "{e} --out {m}/text.tflite/run": "text.tflite/run … Not a directory",
    "{e} --out {m} --overwrite": "is neither empty nor",
    "{e} --out out --first 5 --seed-ids 3:9 --strategy random": "names seed 5, and --first 5",
    "{e} --out out --seed-ids 0:2 --strategy random --total-queries 9": "is shared out among all",
    "{e} --seed-ids 0:2 --strategy random --device emulated-all": "are for one run … NAME/builtin",
    "{e} --out out --screen-only --device emulated-all": "are for one run",
    "{e} --out out --seed-ids 0:2": "boundary reads how the other seeds … --screen-only",
    "{e} --out out --seed-ids 0:2 --screening {m}/no": "there is no run directory",
    "{e} --device emulated-all --device emulated-gpu": "give it alone",
    "{e} --device emulated-non/all": 'unknown device "emulated-non"',
    "{e} --device emulated-all --out {m}": "neither empty nor a matrix of kernel",
    "{e} --fleet local --device emulated-builtin --device emulated-xnnpack": "name one with",
    "{e} --fleet local --device nosuch": "nosuch",
    "{e} --fleet local --seed-ids 0:1000 --dry-run": "names seed 200",
    "{e} --fleet local --screen-only": "makes and hands on the screening itself",
    "{e} --fleet local --total-queries 100": "--max-queries",
}

OTHERS: dict[str, str] = {
    "serch": "No such command 'serch'",
    "devices show emulated-refrence": 'mean "emulated-reference"',
    "strategies boundry": "did you mean 'boundary'?",
    "conditions pinknoise": "'pinknoise' (did you mean 'pink-noise'?)",
    "conditions zzz": "'zzz': `edgeflare conditions` lists all",
    "conditions tokens": "there are no conditions of the domain tokens",
    "agent install --device emulated-builtin": "name one that is reached by adb:// or ssh://",
    "agent uninstall --device emulated-builtin": "name one that is reached by adb:// or ssh://",
    "bench {e} --strategy donor --operators pixel-change": "donor cannot draw from chosen",
    "bench {e} --strategy random --set first_leap=4": "expected STRATEGY.NAME=VALUE",
    "bench {e} --strategy boundary --set boundray.first_leap=4": "none of the strategies",
    "bench {e} --strategy random --fleet local --only {e}/random-0": "no such run",
    "bench {e} --strategy random --fleet local --device emulated-all": "name one class",
    "bench {e} --strategy random --fleet 192.0.2.1:1": "--fleet-file",
    "bench {e} --strategy random --fleet local --out out --resume": "leave out --resume",
    "rank {e} --compressed {e}/original.tflite --strategy gradient": "say --strategy boundary",
    "rank {e} --compressed {e}/original.tflite --test absent.npz": "--test absent.npz",
    "rank {e} --compressed {e}/original.tflite --test {m}/small.npz": "small.npz",
    "rank {e} --compressed absent.tflite": "absent.tflite cannot be read",
    "rank --original {e}/original.tflite --compressed {e}/compressed.tflite"
    " --compressed {e}/original.tflite": "say --seeds with a path such as seeds.npz",
    "repair {e} --method precision --in-place": "leave --in-place away",
    "repair {e} --max-size big": "--max-size 'big' is no limit",
    "repair {e} --max-latency +2KiB": "--max-latency '+2KiB' is no limit",
    "repair {e} --method shifts": "--method shifts needs a run",
    "repair {e} --search-again": "--search-again needs a run",
    "repair {e} --ensemble xnnpack": "--ensemble is for --search-again",
    "repair {e} --groups 0 --robustness": "--robustness attacks what deviates less",
    "repair {e} --groups 0 --search-again": "by --method fmt or auto, without --search-again",
    "repair {e} --rounds 2": "a setting of shifts, and {e} is a pair: leave it away",
    "repair {e} --original {e}/compressed.tflite": "original and compressed model swapped?",
    "repair {e} --original {e}/compressed.tflite --dry-run": "compressed model swapped?",
    "repair {e} --original json:loads --trust": "--method shifts repairs a run without them",
    "repair {e}x": "there is no {e}x (did you mean '{e}'?): name a run directory",
    "survey {w} --conditions flicker": "--conditions flicker … of the domain frames, not of audio",
    "survey {w} --severities 0-3": "--severities 0-3 … from 1 to 5",
    "survey {w} --conditions none --severities 3": "with --conditions none … leave one of them out",
    "survey {w} --gate fast": "--gate 'fast' … rate<0.01",
    "survey {w} --gate speed<0.1": "no measure is called 'speed'",
    "survey {w} --gate rate<0.1 --gate rate<10%": "--gate 'rate<10%': is given twice",
    "survey {w} --inputs {m}/sounds.npz --gate accuracy-drop<0.01": "who is right … give --inputs",
    "survey {w} --gate 'rate<0.01 for group old'": "needs groups … --groups",
    "survey {w} --conditions none --gate 'rate<0.01 under white-noise'": "is not surveyed",
    "survey {w} --limit 29": "gives 29 inputs, too few for a rate … up to 12% still … --inputs",
    "survey {w} --inputs absent.npz --show a.html": "--inputs: there are no inputs at … absent.npz",
    "survey {m}/nothing": "no pair folder … or --original, --compressed and --inputs",
    "survey {w} --groups skin": "--groups skin … no column of that name",
    "survey {w} --conditions none --rare": "looked for under conditions … --conditions",
    "survey {w} --rare-queries 500": "--rare-queries 500 … add --rare",
    "survey {w} --rare --rare-queries 9": "--rare-queries … 100 or more",
    "survey": "name a pair … --compressed and --inputs",
    "survey {w} --json": "--json: `edgeflare report RUN --json` prints what",
    "survey {w} --show sheet.pdf": "--show sheet.pdf … .html",
    "survey {w} --show {m}/nothing/sheet.html": "there is no folder … nothing: make it before",
    f"survey {{w}} --conditions quiet --show {{m}}/{'a' * 300}.html": "written: File name too long",
    "survey {w} --conditions quiet --overwrite --show {m}/folder.html": "written: Is a directory",
    "survey {w} --conditions none --show sheet.html": "--show … --conditions",
    "survey {w} --baseline {m}/nothing": "there is no run directory … check --baseline",
    "survey --resume --out {m}/nothing": "there is no run … leave out --resume to begin one",
    "survey {w} --device emulated-all": "which search, replay and conform take alone",
    "survey {e} --fleet local --show new.html": "leave out --fleet",
    "conform --ops CONV_2": "no operator CONV_2 (did you mean 'CONV_2D'?) … conform --list`",
    "conform --list --ops AD": "there is no operator AD",
    "conform --dtype int9": "there is no type int9 … int8 … --list",
    "conform --ops FLOOR --dtype int8": "in int8 … the types float32",
    "conform --ops ADD,FLOOR --dtype uint8": "FLOOR does not exist in uint8",
    "conform --ops ADD,,MUL": "--ops 'ADD,,MUL' … separated by commas",
    "conform --from {m}/half.tflite": "its graph cannot be read … a .tflite file that is whole",
    "conform --from {m}": "holds no pair.toml … give the path of a .tflite file",
    "conform --from {m}/hal.tflite": "there is no model file … half.tflite",
    "conform --from {m}/outside.tflite": "are not in the file … name a file that has them",
    "conform --from {e}/compressed.tflite --ops FLOOR": "has none of the operators … CONV_2D int8",
    "conform --matrix --draw memo": "leave --draw out",
    "conform --matrix --from {m}/model.tflite": "--matrix tries drawn models on all kernel sets",
    "conform --versions new": "'new' is no version: write some as 2.1.6,2.2.0, or all",
    "doctor --probe": "--probe tries known issues: add --known-issues",
    "doctor --device emulated-builtin": "--device says where … add --known-issues --probe",
    "doctor --known-issues --versions 2.1.6": "--versions says where … add --known-issues --probe",
    "doctor --known-issues --probe --device a --versions 2.1.6": "leave --device out",
    "conform --accepted {m}/acepted.toml": "cannot be read … accepted.toml",
    "conform --accepted {m}/accepted.toml": "reason is missing: add it",
    "conform --time-limit 0": "--time-limit '0' … above 0 … 10m",
    "conform --time-limit soon": "--time-limit 'soon' … 90s",
    "conform --models 0": "--models … 1 or more",
    "conform --draw evenly": "--draw … uniform … memo",
    "conform --resume": "add --out RUN",
    "conform --resume --out {m}/nothing": "there is no run directory",
    "conform --resume --out {m}": "is no run directory",
    "conform --out {m}": "is neither empty nor a run",
    "conform --resume --overwrite --out {m}": "--resume goes on with a run and --overwrite",
    "conform --device emulated-builtin --device emulated-xnnpack": "--fleet",
    "conform --ops NONE --fleet local": "NONE",
    "conform --device pixel --fleet local --fleet-file new": "cluster of this host alone",
    "merge --out out": "Missing argument",
    # {c} is a conformance run on a device that nobody here has.
    **dict.fromkeys(
        (
            *("explain {c}", "compare {c} {c}", "repair {c} --out out"),
            *("search {e} --resume --out {c}", "survey {e} --resume --out {c}"),
            "survey {e} --baseline {c} --out out",
        ),
        "{c} holds a conformance run: type `edgeflare report {c}`",
    ),
    "merge {c} --out out": "holds a conformance run",
    "conform --resume --out {c}": "holds a replay of a conformance run",
    "report {c} --csv": "--csv has nothing to write of a conformance run",
    "report {c} --html --csv": "say --html, --junit, --summary or --accepted",
    "report {c} --json --html": "give --json alone",
    "export {c} 7": "has no finding 7: it has those from 1 to 1",
    "export {c} first": "first is no finding: name it by its number, as reports show it",
    "export {c} 1 --no-models": "--no-models is for what a search or a survey found",
    "export {c} 1 --original model.tflite": "leave --original out",
    "export {c} 1": "gone or damaged",
    "replay {c}": "gone or damaged",
    "replay {c} --compressed model.tflite": "--compressed is for what a search or a survey found",
    "replay {c} --fail-on harmful": "leave --fail-on harmful out",
    "replay {c} --resume": "leave --resume out",
}

OF_RUNS: dict[str, str] = {
    # {r} is a finished search.
    "search {e} {small} --out {r}": "holds a run already … --overwrite",
    "search {e} {small} --first 5 --out {r} --resume": "--first 6, not 5",
    "search {e} {small} --device emulated-reference --out {r} --resume": "on a device with kernels"
    " builtin, but the one of now has reference",
    "search {e} {small} --scale 254 --out {r} --resume": "{r} belongs to another pair",
    "report {r}s": "there is no run directory {r}s (did you mean '{r}'?): check the path",
    "report {r} --accepted": "--accepted has nothing to write of a search or a replay",
    "report {r} --json --csv": "give --json alone",
    "explain {r}s": "there is no run directory {r}s (did you mean '{r}'?): check the path",
    "explain {r} 99 --fleet local --device a": "99 is no finding",
    "explain {r} --fleet local --device a --device b": "name one class",
    "explain {r} 3.5": "3.5 is no finding of {r}: name one by its seed's id",
    "export {r} 999": "{r} has no finding from seed 999; it has",
    "export {r} 999 --out {r}/run.json": "--out {r}/run.json: expected the name of a file that ends"
    " with .zip",
    "compare {r} {r} --figure {r}/run.json": "expected the name of a file that ends with .svg",
    "export {r} abc": "abc is no finding: name it by its seed's id, or by its file",
    "compare {r}": "one run cannot be compared: name two run directories or more",
    "merge {r} {e} --out out": "is no run directory",
    "survey {w} --out {r} --resume": "is no survey, but a search",
    "survey {w} --baseline {r}": "{r} is no survey, but a search: name a run of `edgeflare survey`",
    "conform --out {r} --resume": "holds no conformance run",
    "replay {r} --resume": "--resume has to know which run: add --out RUN",
    "replay {r} --baseline {c} --out out": "holds a conformance run",
    "replay {r} --out {r} --overwrite": "{r} is what is replayed, or its baseline: name another",
    "replay {r} --fleet local": "name it with --device CLASS",
    "replay {r} --fleet local --device a --device a": "given twice",
    "replay {r} --fleet local --device pixel/all": "takes classes of devices",
    "replay {r} --fleet local --device a --device b --out {m}": "neither empty nor of the runs",
    "replay {r} --fleet local --device a --out {r} --overwrite": "is what is replayed",
    "replay {r} --fleet local --device a --device b --resume": "add --out RUN",
    "replay {r} --fleet local --device a --device b --out out --resume": "leave out --resume",
    "replay {r} --fleet local --device a --device b --baseline nowhere": "nowhere",
    "repair {r} --out {m}": "{m} is not empty: go on with the repair in it with --resume, or name",
    "repair {r} --limit 60 --out out": "--seeds and --limit are for a pair",
    "repair {r} --method shifts --out out": "seeds, and a repair needs at least 50",
    "repair {r} --method ranges --rounds 2 --out out": "these options allow none: leave it away",
    "repair {r} --in-place --rounds 2 --out out": "these options allow none: leave it away",
    "repair {r} --method shifts --device emulated-reference --search-again --out out": "leave"
    " --device away",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What command lines name: examples, and a folder of what is not as it should be."""
    folder = tmp_path_factory.mktemp("mistakes")
    whole = (EXAMPLE / "compressed.tflite").read_bytes()
    (folder / "empty.tflite").touch()
    (folder / "half.tflite").write_bytes(whole[: len(whole) // 2])
    (folder / "text.tflite").write_text("no model at all")
    (folder / "future.tflite").write_bytes(edited(whole, _convolutions(99)))
    (folder / "two-inputs.tflite").write_bytes(edited(whole, _second_input))
    (folder / "outside.tflite").write_bytes(edited(whole, _without_weights))
    (folder / "folder.html").mkdir()
    known = 'operator = "ADD"\ntype = "int8"\nverdict = "device"\nsymptom = "crash"\n'
    (folder / "accepted.toml").write_text(f"[[accepted]]\n{known}")
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(folder / "small.npz", images=arrays["images"][:4, :8, :8])
    with np.load(EXAMPLES / "spoken_words" / "seeds.npz") as arrays:
        np.savez(folder / "sounds.npz", waves=arrays["waves"], sample_rate=arrays["sample_rate"])
    conformed = conformed_run(tmp_path_factory.mktemp("conformed") / "run").path
    examples = {"e": EXAMPLE, "w": EXAMPLES / "spoken_words"}
    return {**examples, "m": folder, "c": conformed}


def require_refused(line: str, said: str, places: dict[str, Path], here: Path) -> None:
    before = {path: sorted(path.rglob("*")) for path in (places["m"], places["c"])}
    words = line.replace("{small}", " ".join(SMALL)).format(**places)
    place = ["--out", "out"] if line.startswith(("bench", "rank", "repair")) else []
    complaint = refused(*shlex.split(words), *([] if "--out" in line else place))
    for part in said.format(**places).split("…"):
        assert part.strip() in complaint
    assert not list(here.iterdir())
    assert before == {path: sorted(path.rglob("*")) for path in before}


@pytest.mark.parametrize("line", [*(f"search {line}" for line in SEARCHES), *OTHERS])
def test_bad_input_is_answered_in_one_line_and_nothing_is_written(
    line: str, places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = SEARCHES.get(line.removeprefix("search ")) or OTHERS[line]
    require_refused(line, said, places, tmp_path)


@pytest.mark.parametrize("line", OF_RUNS)
def test_what_does_not_go_with_a_run_is_refused_and_the_run_stays(
    line: str,
    places: dict[str, Path],
    finished: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (finished.folder / "run.json").read_bytes()
    require_refused(line, OF_RUNS[line], {**places, "r": finished.folder}, tmp_path)
    assert (finished.folder / "run.json").read_bytes() == before


@pytest.mark.slow
def test_the_process_itself_says_no_more_than_its_line(
    start: Call, places: dict[str, Path], tmp_path: Path
) -> None:
    model = places["m"] / "half.tflite"
    said = start("search", EXAMPLE, "--compressed", model, cwd=tmp_path)
    assert (said.code, said.out, "half.tflite" in said.complaint()) == (2, "", True)
    assert not list(tmp_path.iterdir())


def test_an_agent_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused("search", EXAMPLE, "--device", "grpc://127.0.0.1:1", code=3)
    assert "grpc://127.0.0.1:1: nobody is there" in said
    assert "edgeflare agent serve" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.old_board
def test_an_operator_that_only_the_device_lacks(
    old_board_python: Path, tmp_path: Path, put_profile: Callable[[str, str], None]
) -> None:
    put_profile("old-board", f'transport = "emulated"\npython = "{old_board_python}"\n')
    newer = tmp_path / "newer.tflite"
    newer.write_bytes(edited((EXAMPLE / "compressed.tflite").read_bytes(), _convolutions(8)))
    device = ("--device", "old-board", "--trust", "--out", tmp_path / "run")
    said = refused("search", EXAMPLE, "--compressed", newer, *device)
    assert "old-board: tflite-runtime 2.14.0 has no operator " in said
    assert f"(the host's {LITERT} takes it)" in said
    assert not (tmp_path / "run").exists()


def _convolutions(version: int) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        for code in model.operatorCodes:
            if code.builtinCode == schema.BuiltinOperator.CONV_2D:
                code.version = version

    return change


def _second_input(model: Any) -> None:
    (graph,) = model.subgraphs
    mask = schema.TensorT()
    mask.name, mask.shape, mask.type = "mask", [1, 4], schema.TensorType.FLOAT32
    graph.tensors.append(mask)
    graph.inputs = [*graph.inputs, len(graph.tensors) - 1]


def _without_weights(model: Any) -> None:
    """Let constants lie in files of their own."""
    for tensor in model.subgraphs[0].tensors:
        if model.buffers[tensor.buffer].data is not None:
            tensor.buffer, tensor.externalBuffer = 0, 1
