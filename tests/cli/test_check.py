"""`edgeflare check` as a command: verdicts, forms, what goes on, and what is refused."""

from __future__ import annotations

import errno
import json
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from brief_commands import LAYER_INPUTS, brief_checks, brief_repairs, only
from called_commands import EXAMPLES, call_here, refused
from edgeflare.api.check import ShownCheck
from edgeflare.diagnose.layers.layers_document import load_layers
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.record.atomic_file import write_atomically
from edgeflare.release.answers import Answers, ask_arms
from edgeflare.release.causes.cause import Cause
from edgeflare.release.check_document import CheckDocument, check_bytes, load_check
from edgeflare.release.check_run import CheckFolder
from edgeflare.release.phases import answer_phase, measurement_phases
from edgeflare.release.sections import CheckSection
from fault_injection import Planted, broken
from parsed_pages import Parsed
from public_cases import CASES, copied_case

pytestmark = pytest.mark.slow

EXAMPLE = EXAMPLES / "fashion_lenet4"
MODELS = (EXAMPLE / "original.tflite", EXAMPLE / "compressed.tflite")
FEW = ("--limit", "70", "--no-near")
FEWER = ("--limit", "20", "--no-near")
ALONE = (MODELS[1], "--device", "emulated-xnnpack")


@pytest.fixture(scope="module", autouse=True)
def _brief() -> Iterator[None]:
    with brief_checks():
        yield


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("check") / "out"
    card = out.parent / "README.md"
    said = call_here("check", EXAMPLE, *FEW, "--out", out, "--card", card)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[1].startswith("May ship. As far as 70 inputs tell")
    assert "May ship. As far as 70 inputs tell" in card.read_text()
    assert len(lines) <= 40
    return out


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a check of the two models of the example without its pair.toml."""
    out = tmp_path_factory.mktemp("bare") / "out"
    said = call_here("check", *MODELS, "--inputs", EXAMPLE / "seeds.npz", *FEWER, "--out", out)
    assert said.code == 0, said.err
    assert "Assumed\n• the output" in said.out
    assert any("pixels are prepared as by" in one for one in document(out).notes)
    return out


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a check of the example's compressed model alone, on inputs that are drawn."""
    out = tmp_path_factory.mktemp("alone") / "out"
    said = call_here("check", *ALONE, "--out", out)
    assert said.code == 0, said.err
    assert "on 64 drawn inputs its outputs are equal" in " ".join(said.out.split())
    return out


def document(out: Path) -> CheckDocument:
    return load_check(out / "check.json")


def section(name: str, out: Path) -> CheckSection:
    return next(one for one in document(out).sections if one.name == name)


def test_a_pair_is_judged_from_all_that_was_measured(checked: Path) -> None:
    found = document(checked)
    assert found.verdict == "ship"
    assert found.figures.data is not None
    assert (found.figures.data.inputs, found.figures.data.available) == (70, 70)
    assert found.figures.layers is not None
    assert found.figures.layers.inputs == LAYER_INPUTS
    (output,) = found.figures.devices[0].outputs
    assert output.compression is not None
    assert output.kernels is not None
    assert 30 < (output.compression.snr_db or 0) < (output.kernels.snr_db or 0)
    assert [one.name for one in found.sections] == [
        *("data", "decisions", "numbers", "file", "layers", "device", "field", "near", "cost"),
        "mend",
    ]
    assert load_layers(checked / "layers" / "layers.json").inputs == LAYER_INPUTS


def test_the_operators_of_the_model_are_tried_by_an_ordinary_run(checked: Path) -> None:
    (found,) = document(checked).figures.operators
    assert (found.device, found.run) == ("emulated-builtin", "conform")
    assert (found.tried, found.operators, found.faults) == (11, 11, ())
    assert found.models > 11
    assert call_here("report", checked / found.run, "--json").code == 0
    variants = document(checked).figures.devices[0].kernels.variants
    assert variants is not None
    assert [(one.kind, one.others) for one in variants] == [("threads", 0), ("batch", 0)]


def test_a_check_is_reported_in_each_form(checked: Path) -> None:
    assert call_here("report", checked, "--html", "--junit", "--summary").code == 0
    assert "May ship. As far as" in (checked / "check.html").read_text()
    suite = ElementTree.parse(checked / "junit.xml").getroot()[0]  # noqa: S314 - ours
    names = [case.get("name") for case in suite.iter("testcase")]
    assert names[0] == "verdict"
    assert "gate accuracy-drop on emulated-builtin" in names
    assert (suite.get("failures"), suite.get("tests")) == ("0", "8")
    assert "May ship" in (checked / "summary.md").read_text()
    assert msgspec.json.decode(call_here("report", checked, "--json").out)["verdict"] == "ship"
    assert "May ship" in call_here("report", checked).out


def test_the_page_links_to_runs_that_are_there(checked: Path) -> None:
    assert call_here("report", checked / "conform", "--html").code == 0
    assert call_here("report", checked, "--html").code == 0
    page = Parsed((checked / "check.html").read_text())
    links = [str(one["href"]) for one in page.all("a")]
    assert {"#layers", "layers/", "conform/conform.html"} <= {*links}
    ids = {one.get("id") for _, one in page.elements}
    for link in links:
        assert (checked / link).exists() or link.removeprefix("#") in ids
    assert f"edgeflare report {checked}/layers --html" in page.text
    assert call_here("report", checked / "layers", "--html").code == 0


def test_charts_stand_in_the_page_where_they_can_be_drawn(
    checked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles = ("Loss under conditions", "Sensitivity of each layer")
    assert call_here("report", checked, "--html").code == 0
    page = (checked / "check.html").read_text()
    assert [title in page for title in titles] == [True, True]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "edgeflare.pages.chart", None)
        assert call_here("report", checked, "--html").code == 0
    without = (checked / "check.html").read_text()
    assert [title in without for title in titles] == [False, False]
    assert "Conditions of the field" in without


def test_inputs_near_are_searched_for_beside_a_reference(tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ("--limit", "20", "--device", "emulated-xnnpack", "--out", out)
    said = call_here("check", EXAMPLE, *given)
    assert said.code == 0, said.err
    begun = [line.partition(":")[0] for line in said.err.splitlines() if "at most" in line]
    device = "emulated-xnnpack"
    assert begun == [
        *(f"{name} {device}" for name in ("answers of", "threads and batches on", "cost on")),
        *("field", "layers", f"operators on {device}", "near"),
    ]
    near = document(out).figures.near
    assert near is not None
    assert (near.model.seeds, near.reference.seeds) == (8, 8)
    assert near.model.found > 0
    (section,) = (one for one in document(out).sections if one.name == "near")
    assert "with good int8 of this network" in section.sentence
    for name in (near.model.run, near.reference.run):
        assert call_here("report", out / name).code == 0
    other = call_here("check", EXAMPLE, "--original", "somewhere.onnx", "--no-near", *given)
    assert other.code == 2


def test_changed_inputs_are_shown(tmp_path: Path) -> None:
    few = ("--limit", "20", "--no-near")
    case = copied_case("resize_half_pixel", tmp_path)
    shown = tmp_path / "shown"
    said = call_here("check", case, *few, "--out", shown)
    assert said.code == 1
    assert len(said.out.splitlines()) <= 40
    changed = document(shown).figures.devices[0].decisions.changed_inputs
    files = {one.file for one in changed}
    assert files == {f"inputs/{path.name}" for path in (shown / "inputs").iterdir()}
    assert [len(one.answers) for one in changed] == [1, 1, 1, *[0] * (len(changed) - 3)]
    page = (shown / "check.html").read_text()
    assert '<img src="data:image/' in page
    assert page.count('<image class="mask"') == 3 * 4  # of the arms, and their difference
    assert call_here("report", shown, "--summary").code == 0
    assert "data:image" not in (shown / "summary.md").read_text()
    (shown / changed[0].file).unlink()
    assert call_here("report", shown, "--html").code == 0
    assert "its file is gone or damaged" in (shown / "check.html").read_text()


def test_models_are_checked_without_a_pair(bare: Path, tmp_path: Path) -> None:
    assert 'preset "unit" (--preset): its input holds 0 to 1' in document(bare).notes[-1]
    again = call_here("check", bare, *FEWER, "--out", tmp_path / "again")
    assert again.code == 0, again.err
    assert document(tmp_path / "again").figures.data == document(bare).figures.data


def test_what_is_assumed_is_written_alone(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    folder.mkdir()
    original, compressed = (Path(shutil.copy(model, folder)) for model in MODELS)
    inputs = ("--inputs", EXAMPLE / "seeds.npz", "--write-pair", folder)
    assert call_here("check", original, compressed, *inputs).code == 0
    text = (folder / "pair.toml").read_text()
    assert "# - pictures of another size are stretched" in text
    assert '\ncompressed = "compressed.tflite"\n' in text
    assert f'\nseeds = "{EXAMPLE / "seeds.npz"}"\n' in text
    moved = folder.rename(tmp_path / "moved")
    assert load_pair(moved).compressed == moved / "compressed.tflite"
    assert "correct it" in refused("check", *MODELS, *inputs[:-1], moved)


def test_the_gates_of_a_pair_hold(tmp_path: Path) -> None:
    pair = tmp_path / "pair"
    shutil.copytree(EXAMPLE, pair)
    text = (pair / "pair.toml").read_text()
    (pair / "pair.toml").write_text(f"{text}\n[gates]\nnet-harm = 0.5\nfaults = false\n")
    out = ("--out", tmp_path / "out")
    gate = ("--limit", "5", "--gate", "accuracy-drop<0.4", "--undecided", "pass")
    assert call_here("check", pair, *gate, *out).code == 0
    limits = document(tmp_path / "out").plan.gates
    assert (limits["net-harm"], limits["accuracy-drop"]) == (0.5, 0.4)
    assert "faults" not in limits
    (pair / "pair.toml").write_text(f"{text}\n[gates]\nharm = 0.5\n")
    assert "[gates]: there is no gate 'harm'" in refused("check", pair)


def test_a_device_is_checked_by_the_compressed_model_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    inputs = ("--inputs", EXAMPLE / "seeds.npz")
    said = call_here("check", MODELS[1], *inputs, *FEWER, "--out", out)
    found = document(out)
    assert found.plan.about == "device"
    assert said.code == 0, said.out
    assert found.verdict == "undecided"
    assert "computes the file as the host does" in found.sentence


def test_without_inputs_they_are_drawn(alone: Path) -> None:
    (drawn,) = document(alone).figures.drawn
    assert (drawn.inputs, drawn.failed_here, drawn.unsteady) == (64, {}, 0)
    assert [one.kind for one in drawn.variants] == ["threads", "batch"]
    assert [one.tried for one in document(alone).figures.operators] == [11]
    assert document(alone).figures.layers is not None
    assert call_here("report", alone, "--html", "--junit").code == 0
    assert call_here("check", MODELS[1], "--dry-run").code == 0


def test_what_is_known_is_not_measured_again(
    checked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    shutil.copytree(checked, out)

    def never(*_: object) -> Any:
        raise AssertionError("it is known")

    def full(*_: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(answer_phase, "ask_arms", never)
    monkeypatch.setattr(measurement_phases, "layer_figures", never)
    monkeypatch.setattr(measurement_phases, "pair_variants", never)
    monkeypatch.setattr(measurement_phases, "operator_figures", never)
    said = call_here("check", EXAMPLE, *FEW, "--resume", "--out", out)
    assert said.code == 0, said.err
    assert document(out).figures == document(checked).figures
    with monkeypatch.context() as patch:
        patch.setattr(CheckFolder, "keep_page", full)
        said = call_here("check", EXAMPLE, *FEW, "--resume", "--out", out)
    assert said.code == 3
    assert f"the same command with --out {out} --resume goes on" in said.err.splitlines()[-1]
    for how in ((), ("--dry-run",)):
        said = call_here("check", EXAMPLE, "--limit", "60", "--resume", "--out", out, *how)
        assert said.code == 2
        assert "was begun with --limit 70, not 60" in said.err
    said = call_here("check", EXAMPLE, *FEW, "--resume", "--out", out, "--dry-run")
    assert f"would go on with {out}; nothing was written" in said.out


def test_layers_on_drawn_inputs_that_were_cut_off_are_looked_into_anew(
    alone: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(alone, tmp_path / "out"))
    before = document(out)
    assert before.figures.layers is not None
    one = msgspec.structs.replace(before.figures.layers, inputs=1)
    figures = msgspec.structs.replace(before.figures, layers=one, cut=("device emulated-xnnpack",))
    cut = msgspec.structs.replace(before, figures=figures, stopped_by="time-limit")
    write_atomically(out / "check.json", check_bytes(cut))
    assert call_here("check", *ALONE, "--out", out, "--resume").code == 0
    assert document(out).figures == before.figures


def test_operators_that_there_was_no_time_for_are_tried_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("check", MODELS[1], "--out", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(measurement_phases, "_OPERATORS_LEAST", 1e9)
        assert call_here(*given).code == 0
    cut = document(tmp_path / "out")
    assert (cut.stopped_by, cut.figures.cut) == ("time-limit", ("operators on emulated-builtin",))
    assert call_here(*given, "--resume").code == 0
    found = document(tmp_path / "out")
    assert (found.stopped_by, found.figures.cut) == (None, ())
    assert [one.tried for one in found.figures.operators] == [11]
    assert found.figures.drawn == cut.figures.drawn


def test_what_was_cut_off_in_its_last_step_is_done_anew(checked: Path, tmp_path: Path) -> None:
    """All inputs were answered, and there was no time to hold the outputs against each other."""
    out = tmp_path / "out"
    shutil.copytree(checked, out)
    before = document(out)
    device = msgspec.structs.replace(before.figures.devices[0], outputs=())
    figures = msgspec.structs.replace(
        before.figures, devices=(device,), cut=("answers of emulated-builtin",)
    )
    cut = msgspec.structs.replace(before, figures=figures, stopped_by="time-limit")
    write_atomically(out / "check.json", check_bytes(cut))
    assert call_here("check", EXAMPLE, *FEW, "--resume", "--out", out).code == 0
    found = document(out)
    assert (found.stopped_by, found.figures.cut) == (None, ())
    assert found.figures.devices == before.figures.devices


def test_a_device_that_is_lost_leaves_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def lost(*given: Any) -> Iterator[Answers]:
        yield from asked(*given)
        raise InfrastructureError("the cable was pulled")

    asked = ask_arms
    with monkeypatch.context() as patch:
        patch.setattr(answer_phase, "ask_arms", lost)
        said = call_here("check", EXAMPLE, *FEWER, "--out", out)
    assert said.code == 3
    assert "the cable was pulled" in said.err
    found = document(out)
    assert (found.verdict, found.stopped_by) == ("undecided", "infrastructure")
    assert "the cable was pulled" in found.sentence
    said = call_here("check", EXAMPLE, *FEWER, "--resume", "--out", out)
    assert said.code == 0, said.err
    assert (document(out).verdict, document(out).stopped_by) == ("ship", None)


def test_after_ctrl_c_no_further_device_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> Iterator[Answers]:
        first, *_ = ask_arms(*given)
        signal.raise_signal(signal.SIGINT)
        yield first

    monkeypatch.setattr(answer_phase, "ask_arms", interrupted)
    out, nobody = tmp_path / "out", "grpc://127.0.0.1:9"
    devices = ("--device", "emulated-xnnpack", "--device", nobody)
    said = call_here("check", EXAMPLE, *FEW, *devices, "--out", out)
    assert said.code == 130, said.err
    found = document(out)
    assert (found.verdict, found.stopped_by) == ("undecided", "interrupt")
    assert f"answers of {nobody}" in found.figures.cut
    assert [one.decisions.inputs for one in found.figures.devices] == [64]


def test_a_budget_that_is_up_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    now = iter(range(0, 100_000, 30))
    monkeypatch.setattr("edgeflare.release.pair_check.time.monotonic", lambda: float(next(now)))
    said = call_here("check", EXAMPLE, "--budget", "40s", "--out", out)
    assert said.code == 1, said.err
    found = document(out)
    assert (found.verdict, found.stopped_by) == ("undecided", "time-limit")
    assert "This is not all" in said.out


def test_so_many_of_a_large_set_are_taken_and_may_be_too_few_to_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeflare.release.pair_check.MOST_INPUTS", 5)
    few = ("--time-limit", "60s", "--out", tmp_path / "out")
    said = call_here("check", EXAMPLE, *few, "--undecided", "pass")
    assert said.code == 0, said.err
    assert "Undecided. 5 inputs cannot decide anything" in said.out
    assert document(tmp_path / "out").notes[-1].startswith("at most 5 inputs are taken; --limit")
    assert call_here("check", EXAMPLE, *few, "--overwrite").code == 1


def test_unlabelled_inputs_are_judged_as_far_as_they_tell(tmp_path: Path) -> None:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(tmp_path / "inputs.npz", images=arrays["images"][:60])
    out = tmp_path / "out"
    given = ("--inputs", tmp_path / "inputs.npz", "--no-near")
    said = call_here("check", EXAMPLE, *given, "--out", out)
    assert said.code == 0, said.err
    assert "not checked: accuracy-drop, net-harm" in " ".join(said.out.split())


def test_a_dry_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, card = tmp_path / "out", tmp_path / "README.md"
    said = call_here("check", EXAMPLE, *FEW, "--mend", "--dry-run", "--out", out, "--card", card)
    assert said.code == 0, said.err
    assert f"would write {out}, and write a section of {card}; nothing was written" in said.out
    assert "answers of original, twin, device to 70 inputs on emulated-builtin: about" in said.out
    assert "until 90 s" in said.out  # of three fifths of the budget
    assert "where the file is to blame, a repair at equal cost, until 300 s" in said.out
    monkeypatch.setitem(sys.modules, "litert_quantizer", None)
    said = call_here("check", EXAMPLE, "--limit", "20", "--dry-run")
    assert "no searches near to inputs: pip install 'edgeflare[repair]'" in said.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((EXAMPLE, *MODELS), "3 paths are too many"),
        ((*MODELS, "--original", MODELS[0]), "a model is named twice"),
        ((EXAMPLE, "--undecided", "maybe"), "say fail or pass"),
        ((EXAMPLE, "--resume"), "has to know the folder: add --out DIR"),
        ((EXAMPLE, "--time-limit", "soon"), "expected a time above 0"),
        ((*MODELS,), "--inputs"),
        ((*MODELS, "--inputs", "nowhere"), "there are no inputs at nowhere"),
        ((*MODELS, "--inputs", MODELS[0]), "give an .npz of arrays, or a folder of pictures"),
        ((MODELS[1], "--mend"), "--mend repairs a file towards its original"),
        ((), "name a pair, two models with --inputs, or a .tflite alone"),
    ],
)
def test_what_cannot_be_checked_is_refused(given: tuple[Any, ...], said: str) -> None:
    assert said in refused("check", *given)


class TestComparison:
    """Two checks side by side."""

    @pytest.fixture
    def later(self, checked: Path, tmp_path: Path) -> Path:
        """Return a check that lost a class, decided one gate, and left another unchecked."""
        out = tmp_path / "later"
        found = document(checked)
        ends = {"class-loss": "fail", "accuracy-drop": "pass", "net-harm": "not-checked"}
        gates = tuple(
            msgspec.structs.replace(one, state=ends.get(one.name, one.state)) for one in found.gates
        )
        cause = Cause(rule="class", sentence="Shirt is lost", evidence="", next_step="calibrate")
        out.mkdir()
        (out / "check.json").write_bytes(
            check_bytes(
                msgspec.structs.replace(
                    found, verdict="do-not-ship", sentence="Shirt is lost", cause=cause, gates=gates
                )
            )
        )
        return out

    def test_what_got_better_or_worse_is_said(
        self, checked: Path, later: Path, tmp_path: Path
    ) -> None:
        said = " ".join(call_here("compare", checked, later).out.split())
        assert "the verdict was ship in" in said
        assert "worse: class-loss on emulated-builtin was pass" in said
        assert "better: accuracy-drop on emulated-builtin was open" in said
        assert "worse: net-harm" not in said
        assert "net-harm on emulated-builtin was open, and is not checked" in said
        both = json.loads(call_here("compare", checked, later, "--json").out)
        assert [one["better"] for one in both["changes"]] == [False, True]
        assert both["checks"][str(later)]["verdict"] == "do-not-ship"
        for row in ("right", "changed", "SQNR by compression", "bytes", "median ms"):
            assert f" {row} " in said
        shutil.copytree(checked, tmp_path / "same")
        same = call_here("compare", checked, tmp_path / "same").out
        assert "no gate ended otherwise" in " ".join(same.split())

    def test_checks_are_compared_with_checks(self, checked: Path, tmp_path: Path) -> None:
        assert "compare checks with checks" in refused("compare", checked, tmp_path)
        assert "name another one" in refused("compare", checked, checked)
        figure = ("--figure", tmp_path / "a.svg")
        assert "leave it away" in refused("compare", checked, checked, *figure)


def test_a_document_that_contradicts_itself_is_damaged(checked: Path, tmp_path: Path) -> None:
    found = document(checked)
    wrong = msgspec.structs.replace(found, verdict="do-not-ship")
    path = tmp_path / "check.json"
    path.write_bytes(check_bytes(wrong))
    with pytest.raises(UserError, match="do-not-ship without a cause"):
        load_check(path)


class TestGoingOn:
    """What a check that goes on takes, and what it does anew."""

    def test_another_model_or_other_inputs_are_refused(self, tmp_path: Path) -> None:
        pair, out = tmp_path / "pair", tmp_path / "out"
        shutil.copytree(EXAMPLE, pair)
        given = ("check", pair, "--limit", "5", "--out", out)
        assert call_here(*given, "--undecided", "pass").code == 0
        shutil.copy(pair / "original.tflite", pair / "compressed.tflite")
        said = refused(*given, "--undecided", "pass", "--resume")
        assert "another pair, or other inputs" in said

    def test_a_budget_is_that_of_each_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = tmp_path / "out"
        with monkeypatch.context() as patch:
            now = iter(range(0, 100_000, 30))
            patch.setattr("edgeflare.release.pair_check.time.monotonic", lambda: float(next(now)))
            assert call_here("check", EXAMPLE, *FEW, "--time-limit", "200s", "--out", out).code == 1
        found = document(out)
        assert (found.verdict, found.stopped_by) == ("undecided", "time-limit")
        assert "answers of emulated-builtin" in found.figures.cut
        again = ("--time-limit", "199s", "--resume", "--out", out)
        said = call_here("check", EXAMPLE, *FEW, *again)
        assert said.code == 0, said.out
        found = document(out)
        assert (found.verdict, found.stopped_by, found.figures.cut) == ("ship", None, ())
        assert found.figures.field is not None
        assert found.figures.field.inputs == 70

    def test_a_check_that_is_killed_has_not_said_ship(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out, seen = tmp_path / "out", []

        def killed(*_: object, **__: object) -> None:
            seen.append(document(out))
            raise InfrastructureError("the power failed")

        monkeypatch.setattr(measurement_phases, "layer_figures", killed)
        assert call_here("check", EXAMPLE, *FEW, "--out", out).code == 3
        assert (seen[0].verdict, seen[0].stopped_by) == ("undecided", "killed")
        assert "May ship" not in call_here("report", out).out


def test_a_further_device_that_refuses_the_model_is_named(tmp_path: Path) -> None:
    case, out = copied_case("sparse_densify", tmp_path), tmp_path / "out"
    devices = ("--device", "emulated-xnnpack", "--device", "emulated-micro")
    said = call_here("check", case, *devices, *FEWER, "--out", out)
    assert said.code == 1, said.err
    found = document(out)
    assert found.verdict == "undecided"
    assert found.sentence.startswith("Not all is known: emulated-micro refuses the model")


def test_several_devices_are_each_judged_and_each_is_kept_before_the_next_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, show = tmp_path / "out", ShownCheck.begun
    kept: dict[str, list[str]] = {}

    def begun(self: ShownCheck, name: str, about: float | None, most: float) -> None:
        known = document(out).figures.devices if (out / "check.json").exists() else ()
        kept[name] = [figures.decisions.device for figures in known]
        show(self, name, about, most)

    monkeypatch.setattr(ShownCheck, "begun", begun)
    devices = ("--device", "emulated-xnnpack", "--device", "emulated-builtin")
    said = call_here("check", EXAMPLE, *FEWER, *devices, "--out", out)
    assert said.code == 0, said.err
    names = [one.decisions.device for one in document(out).figures.devices]
    assert names == ["emulated-xnnpack", "emulated-builtin"]
    assert [kept[f"answers of {name}"] for name in names] == [[], names[:1]]
    gates = [one.device for one in document(out).gates if one.name == "accuracy-drop"]
    assert gates == names


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("odd_inputs/bool_mask", "computes the file as the host does"),
        ("odd_inputs/int64_tokens", "computes the file as the host does"),
        ("gru_dynamic", "computes the file as the host does"),
    ],
)
def test_drawn_tokens_are_words_that_the_model_knows(case: str, said: str, tmp_path: Path) -> None:
    model = copied_case(case, tmp_path) / "compressed.tflite"
    out = tmp_path / "out"
    shown = call_here("check", model, "--device", "emulated-xnnpack", "--out", out).out
    (drawn,) = document(out).figures.drawn
    assert drawn.answered > 32
    assert said in document(out).sentence
    seen = document(out).figures.layers is not None
    assert seen is ("The layers on emulated-xnnpack were not looked into: the" not in shown)


def test_unlabelled_inputs_tell_nothing_where_all_get_one_answer(tmp_path: Path) -> None:
    black = np.zeros((40, 28, 28, 1), np.uint8)
    np.savez(tmp_path / "black.npz", images=black)
    out = tmp_path / "out"
    said = call_here("check", EXAMPLE, "--inputs", tmp_path / "black.npz", "--out", out)
    assert said.code == 1
    assert "gives the same answer to 100% of the inputs" in document(out).sentence
    assert document(out).figures.layers is None  # which would take time for nothing


def test_the_commands_that_look_further_run(
    checked: Path, bare: Path, alone: Path, tmp_path: Path
) -> None:
    inputs = tmp_path / "inputs"
    given = ("--inputs", EXAMPLE / "seeds.npz", *FEWER)
    assert call_here("check", EXAMPLE, *given, "--out", inputs).code == 0
    for out in (checked, bare, inputs, alone):
        commands = [one.command for one in document(out).sections if one.command]
        assert commands
        for command in commands:
            program, *words = shlex.split(command)
            assert program == "edgeflare"
            said = call_here(*words, "--dry-run")
            assert said.code == 0, (command, said.err)


def test_write_pair_is_for_models_without_one(tmp_path: Path) -> None:
    where = ("--write-pair", tmp_path / "pair")
    assert "have no pair.toml" in refused("check", EXAMPLE, *where)
    assert "have no pair.toml" in refused("check", MODELS[1], *where)


def test_write_pair_is_asked_for_alone(tmp_path: Path) -> None:
    asked = (*MODELS, "--inputs", EXAMPLE / "seeds.npz", "--write-pair", tmp_path / "pair")
    for more in (["--dry-run"], ["--card", tmp_path / "README.md"], ["--out", tmp_path / "out"]):
        assert f"checks nothing: leave out {more[0]}" in refused("check", *asked, *more)
    assert list(tmp_path.iterdir()) == []


def test_what_nothing_tells_is_asked_for(tmp_path: Path) -> None:
    case = EXAMPLES / "spoken_words"
    models = (case / "original.tflite", case / "compressed.tflite")
    inputs = ("--inputs", case / "seeds.npz")
    said = refused("check", *models, *inputs, "--out", tmp_path / "out")
    assert "takes features of a sound" in said
    assert f"--inputs {inputs[1]} --write-pair pair, correct pair/pair.toml" in said
    pair = tmp_path / "pair"
    assert call_here("check", *models, *inputs, "--write-pair", pair).code == 0
    assert call_here("check", pair, "--limit", "20", "--dry-run").code == 0


@pytest.mark.parametrize("name", ["regression_saturates", "detection_postprocess"])
def test_a_verdict_needs_no_meaning_of_outputs(name: str, tmp_path: Path) -> None:
    case, out = CASES / name, tmp_path / "out"
    models = (case / "original.tflite", case / "compressed.tflite")
    said = call_here("check", *models, "--inputs", case / "seeds.npz", *FEWER, "--out", out)
    assert said.code in (0, 1), said.err
    assert document(out).figures.devices[0].decisions.inputs == 20


def test_objects_have_a_mean_average_precision_for_each_arm(tmp_path: Path) -> None:
    case = copied_case("detection_postprocess", tmp_path)
    with np.load(case / "seeds.npz") as seeds:
        images = seeds["images"][:20]
    right = np.tile(np.array([0.2, 0.2, 0.8, 0.8, 0.0]), (20, 1, 1))
    np.savez(case / "seeds.npz", images=images, targets=right)
    out = tmp_path / "out"
    assert call_here("check", case, "--no-near", "--out", out).code in (0, 1)
    found = document(out).figures.devices[0].decisions
    assert found.pooled.keys() == found.distance.keys() == {"original", "twin", "device"}
    assert "mean average precision" in found.pooled_measure
    (section,) = (one for one in document(out).sections if one.name == "decisions")
    assert f"{found.pooled_measure}: original" in section.sentence


class TestMending:
    """What is said of a repair, and the repair itself where that is asked for."""

    @pytest.fixture
    def faulty(self, tmp_path: Path) -> Path:
        """Return the example with a fault in the constants of its first layer."""
        pair = tmp_path / "pair"
        shutil.copytree(EXAMPLE, pair)
        content = MODELS[1].read_bytes()
        graph = Graph(content)
        layer = graph.tensors[graph.operators[0].outputs[0]].name
        planted = Planted("bias shifted", layer, amount=4)
        (pair / "compressed.tflite").write_bytes(broken(content, planted))
        return pair

    def test_a_check_goes_on_with_a_repair(self, faulty: Path, tmp_path: Path) -> None:
        pytest.importorskip("litert_quantizer")
        out = tmp_path / "out"
        few = ("--limit", "60", "--no-inputs", "--time-limit", "1h")
        given = ("check", faulty, "--device", "emulated-xnnpack", *few, "--out", out)
        assert call_here(*given).code == 1
        before, measured = section("mend", out), document(out).figures
        changed = measured.devices[0].decisions.changed_inputs
        assert changed
        assert not any(one.answers for one in changed)
        assert not (out / "inputs").exists()
        assert not re.search(r"<im(g|age)\b", (out / "check.html").read_text())
        assert (before.state, measured.mendable) == ("not-checked", True)
        assert before.command.endswith("--mend")
        assert document(out).next_step.endswith("; or see with --mend what a repair gives")

        with brief_repairs(), only("ranges"):
            said = call_here(*given, "--resume", "--mend")
            assert said.code == 1, said.err
        found, mended = document(out), section("mend", out)
        assert found.figures.field == measured.field
        assert mended.state == "pass"
        figures = found.figures.mend
        assert figures is not None
        assert figures.near is not None
        assert figures.near.mended > 2 * figures.near.broken
        assert f"of {figures.near.before:,} that deviate near the boundary" in mended.sentence
        assert mended.seen == figures.gain
        assert found.next_step.endswith("; or check what `repair` made, in the folder mend")
        assert not (out / "mend" / "inputs").exists()
        assert call_here("report", out / "mend", "--json").code == 0
        assert call_here("check", out / "mend", *FEW, "--dry-run").code == 0
        _, *words = shlex.split(mended.command)
        assert call_here(*words, "--dry-run").code == 0
        refusal = call_here(*given, "--resume")
        assert "was begun with --mend" in refusal.err

    def test_too_few_inputs_are_refused_as_the_repair_does(
        self, faulty: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        assert call_here("check", faulty, *FEWER, "--mend", "--out", out).code == 1
        found = section("mend", out)
        assert (found.state, found.command) == ("not-checked", "")
        assert "has 20 seeds, and a repair needs at least 50" in found.sentence
        assert "--mend" not in document(out).next_step

    def test_of_a_model_that_may_ship_there_is_nothing_to_mend(
        self, checked: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        shutil.copytree(checked, out)
        said = call_here("check", EXAMPLE, *FEW, "--resume", "--mend", "--out", out)
        assert said.code == 0, said.err
        assert "there is nothing to mend" in said.out
        assert not (out / "mend").exists()


def test_a_check_that_is_to_be_replaced_stays_where_the_new_one_is_refused(tmp_path: Path) -> None:
    pair, out = tmp_path / "pair", tmp_path / "out"
    shutil.copytree(EXAMPLE, pair)
    assert call_here("check", pair, *FEWER, "--out", out).code == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    model = pair / "compressed.tflite"
    model.write_bytes(model.read_bytes()[:3000])
    assert refused("check", pair, *FEWER, "--out", out, "--overwrite").startswith(str(model))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
