"""Names from outside, in whatever a command prints or writes: shown, and never obeyed."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from xml.etree import ElementTree

import flatbuffers  # type: ignore[import-untyped]
import pytest
from ai_edge_litert import schema_py_generated as schema
from markdown_it import MarkdownIt

from brief_commands import brief_repairs
from browsing import started_browser
from called_commands import call_here, completed, document_of, drawn_figures
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_state import AttemptState, FleetState, PlaceState, UnitState
from made_once import made_once
from parsed_pages import Parsed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


EVIL = (
    "=cmd|' /C calc'!A0\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u2028<evil-tag onload=x>]]></style>"
    "</script>](http://evil.example)`*x*\n# head\n\"\"\"\n'''\\"
)
"""What some reader of some output obeys, computes, loads or takes for its own."""

EVIL_FILE = EVIL.replace("/", "_")
EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
NO_TEXT = {".db", ".db-shm", ".db-wal", ".npy", ".npz", ".png", ".tflite", ".wav"}
PAIR = f"p{EVIL_FILE}"
BRIEF = ("--first", "3", "--max-queries", "10", "--shrink", "0", "--within", "none")
MODELS = ("--models", "4")
FIGURES = ("bench", "explain", "rank", "survey")
"""Commands that draw figures beside a page; those of pages are drawn once, with the worst names."""
MARKUP = {"link_open", "html_inline", "html_block", "image", "s_open", "em_open", "code_inline"}


def in_toml(text: str) -> str:
    escaped = (c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in text)
    return f'"{"".join(escaped)}"'


def hostile_model(content: bytes) -> bytes:
    """Return a model whose graphs and tensors have hostile names."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    for graph in model.subgraphs:
        graph.name = EVIL.encode()
        for number, tensor in enumerate(graph.tensors):
            tensor.name = f"{EVIL}{number}".encode()
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def hostile_pair(folder: Path, name: str, compressed: bytes) -> Path:
    """Write a pair in which all that has a name has a hostile one."""
    folder.mkdir()
    files = {key: f"{key}{EVIL_FILE}" for key in ("original", "compressed", "seeds")}
    for key, kind in (("original", "tflite"), ("seeds", "npz")):
        shutil.copy(EXAMPLE / f"{key}.{kind}", folder / f"{files[key]}.{kind}")
    (folder / f"{files['compressed']}.tflite").write_bytes(compressed)
    described = (EXAMPLE / "pair.toml").read_text(encoding="utf-8")
    classes = ", ".join(in_toml(f"{EVIL}{number}") for number in range(10))
    kinds = {"original": "tflite", "compressed": "tflite", "seeds": "npz"}
    named = "".join(f"{key} = {in_toml(f'{files[key]}.{kinds[key]}')}\n" for key in files)
    preprocess = described[described.index("[preprocess]") :]
    (folder / "pair.toml").write_text(
        f"name = {in_toml(name)}\n{named}classes = [{classes}]\n{preprocess}", encoding="utf-8"
    )
    return folder


def write_all(folder: Path) -> None:
    """Write what commands make of pairs, models, devices and conditions with such names."""
    compressed = hostile_model((EXAMPLE / "compressed.tflite").read_bytes())
    original = hostile_model((EXAMPLE / "original.tflite").read_bytes())
    given = folder / "given"
    given.mkdir()
    pair = hostile_pair(given / PAIR, EVIL, compressed)
    other = hostile_pair(given / f"q{EVIL_FILE}", f"2{EVIL}", original)
    (given / "device_profiles").mkdir()
    device = f"d{EVIL_FILE}"
    (given / "device_profiles" / f"{device}.toml").write_text(
        f'description = {in_toml(EVIL)}\ntransport = "emulated"\nkernels = "builtin"\n',
        encoding="utf-8",
    )
    conditions = given / f"c{EVIL_FILE}.toml"
    conditions.write_text('[[conditions]]\ncondition = "gaussian-noise"\nname = "dusk"\n')
    out = folder / "out"
    out.mkdir()
    few = ("--first", "3", "--max-queries", "60", "--shrink", "0", "--within", "none")
    model = pair / f"compressed{EVIL_FILE}.tflite"
    page = ("--html", "--junit", "--summary")
    search = ("search", pair, *few, "--fail-on", "none", "--out")
    show = ("survey", pair, "--conditions", conditions, "--show", out / "conditions.html")
    brief = ("--severities", "1", "--device-queries", "20")
    survey = ("survey", pair, *brief, "--conditions", conditions, "--out")
    said = said_of(
        given,
        *(("devices", "list"), ("devices", "show", device)),
        *((*search, out / "run"), (*search, out / "elsewhere", "--device", device)),
        ("explain", out / "run", "--model-explorer"),
        ("replay", out / "run", "--out", out / "again"),
        ("merge", out / "run", "--out", out / "merged"),
        ("compare", out / "run", out / "elsewhere"),
        *(("report", out / name, *page, "--csv") for name in ("run", "elsewhere", "again")),
        ("report", out / "merged", *page, "--csv"),
        ("bench", pair, "--strategy", "random", *few[:4], "--out", out / "bench"),
        ("rank", pair, other, *few[:6], "--out", out / "rank"),
        *(show, (*survey, out / "survey")),
        ("report", out / "survey", *page, "--csv"),
        ("conform", "--from", model, *MODELS, "--out", out / "ops"),
        ("report", out / "ops", *page, "--accepted"),
    )
    number = document_of(out / "run")["findings"][0]["seed_id"]
    said += said_of(given, ("export", out / "run", str(number), "--out", out / "finding.zip"))
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


def write_inspected(folder: Path, made: Path) -> None:
    """Inspect the run of such a pair."""
    pytest.importorskip("jax", reason="needs the extra whitebox")
    run = folder / "out" / "run"
    shutil.copytree(made / "out" / "run", run)
    brief = ("--behaviour", "error", "--max-inputs", "100", "--precision", ".9")
    said = said_of(made / "given", ("inspect", run, *brief), ("report", run, "--html"))
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


def write_repaired(folder: Path, made: Path) -> None:
    """Repair such a pair, in little time."""
    pytest.importorskip("litert_quantizer", reason="needs the extra repair")
    given, out = made / "given", folder / "out"
    how = ("--method", "weights-only", "--device", "emulated-xnnpack", "--max-latency", "none")
    with brief_repairs():
        said = said_of(
            given,
            ("repair", given / PAIR, *how, "--out", out / "repaired"),
            ("report", out / "repaired", "--html", "--summary"),
        )
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


def write_kernel_sets(folder: Path, made: Path) -> None:
    """Search such a pair on all kernel sets, and try the operators of its model on them."""
    pair, out = made / "given" / PAIR, folder / "out"
    every = ("--device", "emulated-all", "--out")
    model = pair / f"compressed{EVIL_FILE}.tflite"
    said = said_of(
        made / "given",
        ("search", pair, *BRIEF, "--fail-on", "none", *every, out / "sets"),
        ("conform", "--from", model, *MODELS, *every, out / "operators"),
    )
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


def write_document(folder: Path, made: Path) -> None:
    """Show a run whose document has such names wherever it may have any."""
    run = folder / "out" / "run"
    shutil.copytree(made / "out" / "run", run, ignore=shutil.ignore_patterns("run.db*", "*.html"))
    document = document_of(run)
    document["classes"] = [EVIL] * len(document["classes"])
    document["pair"] |= {"name": EVIL, "compressed": EVIL}
    document["warnings"] = [EVIL]
    document["devices"][0]["name"] = EVIL
    document["devices"][0]["provenance"] |= {"runtime": EVIL, "cache": EVIL}
    for entry in document["findings"]:
        entry |= {"device": EVIL, "operators": [EVIL]}
    (run / "run.json").write_text(json.dumps(document))
    other = made / "out" / "elsewhere"
    with drawn_figures():
        said = said_of(
            folder,
            ("report", run),
            *(("compare", run, other), ("compare", run, other, "--json")),
            ("report", run, "--html", "--junit", "--summary", "--csv"),
        )
    document["findings"][0][EVIL] = 1
    (folder / "run.json").write_text(json.dumps(document))
    refusal = completed("report", folder, code=2)
    said.append({"command": "report", "said": refusal.out + refusal.err})
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


def write_fleet(folder: Path, _made: Path) -> None:
    """Show a fleet whose hosts have such names; its state stands in for what hosts have said."""
    attempt = AttemptState(1, EVIL, EVIL, 0.0, 3.0, EVIL)
    unit = UnitState(EVIL, EVIL, "0:5", 5, "running", 1, 0, [attempt])
    place = PlaceState(EVIL, EVIL, EVIL, 1, 30.0, 2, EVIL)
    run, beside = folder / "out" / "run", folder / "out" / "run.fleet"
    beside.mkdir(parents=True)
    FleetFolder(beside).show(FleetState(EVIL, 60.0, [unit], [place], [EVIL]))
    asked = (("status", run), ("status", run, "--json"), ("drain", run, EVIL))
    said = said_of(folder, *(("fleet", *one) for one in asked))
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


def said_of(folder: Path, *asked: tuple[str | Path, ...]) -> list[dict[str, str]]:
    """Call commands in a folder, and return what they say."""
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for arguments in asked:
            with drawn_figures() if arguments[0] in FIGURES else nullcontext():
                ended = call_here(*arguments)
            assert ended.code in (0, 1), (arguments, ended.err)
            said.append({"command": str(arguments[0]), "said": ended.out + ended.err})
    return said


MADE_OF_IT: Mapping[str, Callable[[Path, Path], None]] = {
    "inspected": write_inspected,
    "repaired": write_repaired,
    "kernel-sets": write_kernel_sets,
    "document": write_document,
    "fleet": write_fleet,
}


@pytest.fixture(
    scope="module",
    params=[
        "commands",
        pytest.param("inspected", marks=pytest.mark.whitebox),
        "repaired",
        "kernel-sets",
        "document",
        "fleet",
    ],
)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What commands write and print of pairs with such names, by what those need."""
    made = made_once(tmp_path_factory, "hostile-names", write_all)
    make = MADE_OF_IT.get(request.param)
    if make is None:
        return made
    name = f"hostile-names-{request.param}"
    return made_once(tmp_path_factory, name, lambda folder: make(folder, made))


def texts(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the texts in a file, with their names; those in an archive, too."""
    kind = Path(name).suffix
    if kind == ".zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for inner in archive.namelist():
                yield from texts(inner, archive.read(inner))
    elif kind not in NO_TEXT:
        yield name, content.decode("utf-8")


@pytest.mark.slow
def test_whatever_commands_print_commands_no_terminal(written: Path) -> None:
    said = json.loads((written / "said.json").read_bytes())
    assert [one["command"] for one in said if CONTROL.search(one["said"])] == []
    if len(said) > 5:
        assert sum("owned" in one["said"] for one in said) > len(said) / 3


@pytest.mark.slow
def test_whatever_commands_write_holds_names_as_text(written: Path) -> None:
    """Found by walking, so what a command begins to write is held to it, too."""
    files = [path for path in (written / "out").rglob("*") if path.is_file()]
    found = [one for path in files for one in texts(path.name, path.read_bytes())]
    for name, text in found:
        assert not CONTROL.search(text.replace("\r\n", "\n")), name
        if check := CHECKS.get(Path(name).suffix):
            check(text)
    hold = {Path(name).suffix for name, text in found if "owned" in text}
    assert hold >= {".json"}
    if len({path.relative_to(written / "out").parts[0] for path in files}) > 5:
        assert hold >= {".csv", ".md", ".svg", ".xml"}
        assert {Path(name).suffix for name, _ in found} >= {".py", ".toml"}


def check_page(text: str) -> None:
    parsed = Parsed(text)
    assert not parsed.all("evil-tag")
    assert not any(name.startswith("on") for _, one in parsed.elements for name in one)
    named = [one for one in parsed.all("meta") if "http-equiv" in one]
    (policy,) = [one for one in named if one["http-equiv"] == "Content-Security-Policy"]
    assert str(policy["content"]).startswith("default-src 'none'")
    assert text.count("</script") == text.count("<script")
    assert text.count("</style") == text.count("<style")


def check_xml(text: str) -> None:
    tags = [one.tag for one in ElementTree.fromstring(text).iter()]  # noqa: S314 - ours
    assert "evil-tag" not in tags


def check_markdown(text: str) -> None:
    for block in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        assert not MARKUP & {block.type, *(one.type for one in block.children or ())}, block.content
        assert not (block.type == "inline" and block.content.startswith("head"))


def check_csv(text: str) -> None:
    for row in csv.reader(io.StringIO(text)):
        assert not [cell for cell in row if cell.startswith(tuple("=+@\t\r"))]


def check_script(text: str) -> None:
    """Names stay in strings."""
    words = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert "owned" not in words


CHECKS: dict[str, Callable[[str], object]] = {
    ".csv": check_csv,
    ".html": check_page,
    ".json": json.loads,
    ".md": check_markdown,
    ".py": check_script,
    ".svg": check_xml,
    ".toml": tomllib.loads,
    ".xml": check_xml,
}


@pytest.mark.slow
@pytest.mark.browser
def test_pages_with_such_names_run_nothing_and_ask_for_nothing(
    written: Path, tmp_path: Path
) -> None:
    pages = sorted((written / "out").rglob("*.html"))
    assert pages or {"sets", "operators"} == {one.name for one in (written / "out").iterdir()}
    with started_browser(tmp_path) as browser:
        for number, page in enumerate(pages):
            plain = tmp_path / f"{number}.html"
            shutil.copy(page, plain)
            browser.open(plain)
            assert browser.run("return document.querySelectorAll('evil-tag').length") == 0
            assert browser.requested() == {plain.as_uri()}
            refused = [entry["message"] for entry in browser.logged("browser")]
            assert refused == [], page
