"""What the documentation names exists: links, rooms, options, keys, profiles, strategies."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import cv2
import pytest
from typer.main import get_command

from brief_commands import brief_checks
from called_commands import EXAMPLE, completed
from edgeflare.cli.app import LazyCommand, app
from edgeflare.conditions.condition_registry import own_conditions
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.devices.profile_keys import COMMON_KEYS
from edgeflare.devices.transports.transport_registry import transports
from edgeflare.domains.domain_registry import DOMAINS
from edgeflare.domains.image.preprocess import PRESETS
from edgeflare.models.pair_file import Settings
from edgeflare.outside_text import read_toml
from edgeflare.strategies.strategy_registry import strategies
from edgeflare_operators import built_in_operators

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HOST = ROOT / "host" / "edgeflare"
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(DOCS.rglob("*.md")),
]


def words(page: str) -> set[str]:
    """Return the code spans of a page of docs/."""
    return set(re.findall(r"`([^`\n]+)`", (DOCS / page).read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in _anchors(linked), f"{page.name}: {target}"


def test_the_index_names_every_page() -> None:
    """The page of a shipped profile may be named beside that alone."""
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}
    named = "".join(
        (DOCS / name).read_text(encoding="utf-8") for name in ("index.md", "devices.md")
    )
    assert {page for page in pages if f"({page})" in named} == pages


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_a_page_begins_with_what_its_reader_can_do_then(page: Path) -> None:
    title, first = page.read_text(encoding="utf-8").split("\n\n", 2)[:2]
    assert title.startswith("# ")
    assert re.match(r"After this page (you|a|your) ", " ".join(first.split())), first


def test_the_glossary_has_each_word_once_with_one_link() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!word |---)(.+?) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    names = [name for word, _, _ in rows for name in word.split(", ")]
    assert {"arm", "finding", "chain", "query", "session", "surrogate", "verdict"} <= set(names)
    assert len(names) == len(set(names))
    for word, meaning, place in rows:
        assert re.fullmatch(r"\[[^\]]+\]\([^)]+\)", place), word
        assert "](" not in meaning, word


def test_the_design_lists_each_room_in_its_layer() -> None:
    page = (DOCS / "design.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d*) ?\| `([\w./]+)` \|", page, re.MULTILINE)
    rooms = {room.rstrip("/") for _, room in rows}
    assert [one for one in rooms if not ((HOST / one).exists() or (ROOT / one).exists())] == []
    assert {path.parent.name for path in HOST.glob("*/__init__.py")} <= rooms

    listed = defaultdict(set)
    for layer, room in rows:
        if layer:
            listed[layer].add(room.removesuffix(".py"))
    contract = read_toml(ROOT / "pyproject.toml")["tool"]["importlinter"]["contracts"][0]
    known = set().union(*listed.values())
    held = [known & set(re.findall(r"edgeflare\.(\w+)", layer)) for layer in contract["layers"]]
    assert list(listed.values()) == [layer for layer in held if layer]


def test_each_room_names_the_rooms_within() -> None:
    named_by_kind = {"conditions", "domains", "tasks"}  # those within are their domains or tasks
    unnamed = [
        f"{room.name}/{inner.parent.name}"
        for room in sorted(path.parent for path in HOST.glob("*/__init__.py"))
        for inner in sorted(room.glob("*/__init__.py"))
        if f"`{inner.parent.name}`" not in _docstring(room / "__init__.py")
        and room.name not in named_by_kind
    ]
    assert unnamed == []


SAID_BY_SSH = {"Permission denied", "Host key verification failed"}


@pytest.mark.slow
def test_what_a_device_says_when_something_goes_wrong_is_said() -> None:
    """The beginning of each message in the tables of devices stands in a message of the source."""
    said = {
        "".join(map(_literal, node.values)) if isinstance(node, ast.JoinedStr) else _literal(node)
        for source in (HOST, ROOT / "agent")
        for file in source.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, (ast.JoinedStr, ast.Constant))
    }
    shown = {
        (page.name, message)
        for page in (DOCS / "devices").glob("*.md")
        for table in page.read_text(encoding="utf-8").split("| it says | do |")[1:]
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for message in re.findall(r"`([^`]+)`", row)
    }
    assert len(shown) > 15
    for page, message in shown:
        first = re.split(r"…| \(", message.removeprefix("warning: … "))[0].strip()
        rest = first.partition(" ")[2] or first  # the first word may be a name that is filled in
        assert first in SAID_BY_SSH or any(rest in one for one in said), (page, message)


def _literal(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "…"


@pytest.mark.slow
def test_options_exist() -> None:
    helps = [
        subprocess.run(
            [sys.executable, "-m", *module, "--help"],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout
        for module in (["edgeflare_agent"], ["pytest", "-p", "edgeflare.pytest_plugin"])
    ]
    known = {*_options(get_command(app)), *re.findall(r"--[a-z][a-z0-9-]*", "".join(helps))}
    for page in PAGES:
        for code in _commands_and_spans(page.read_text(encoding="utf-8")):
            unknown = set(re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", code)) - known
            assert not unknown, f"{page.name}: {code}"


def test_every_option_about_the_pair_has_its_key_beside_it() -> None:
    page = (DOCS / "pairs" / "keys.md").read_text(encoding="utf-8")
    for field in fields(Settings):
        row = re.search(rf"^\| `{field.name}` \| (.*?) ?\|", page, re.MULTILINE)
        assert row is not None, field.name
        option = f"--{field.name.replace('_', '-')}"
        # The options say which device is asked and what is surveyed; the keys what is run there,
        # and what inputs are.
        another = field.name in ("device", "inputs")
        if option in _options(get_command(app)) and not another:
            assert row[1] == f"`{option}`"
        else:
            assert row[1] == ""


def test_every_preset_is_told_with_its_numbers() -> None:
    page = (DOCS / "pairs" / "keys.md").read_text(encoding="utf-8")
    for name, preprocess in PRESETS.items():
        rows = re.findall(rf"^\| `{name}` \|.*\|$", page, re.MULTILINE)
        assert len(rows) == 1, name
        scale, mean, std = (cell.strip() for cell in rows[0].strip("|").split("|")[2:])
        assert float(scale) == preprocess.scale
        assert tuple(map(float, mean.split(","))) == preprocess.mean
        assert tuple(map(float, std.split(","))) == preprocess.std


def test_every_key_of_a_profile_is_told() -> None:
    keys = {key.name for plugin in transports().values() for key in plugin.keys}
    assert {"serial", "host"} < keys
    assert keys | set(COMMON_KEYS) <= words("devices.md")


def test_every_shipped_profile_is_told() -> None:
    shipped = {path.stem for path in (ROOT / "device_profiles").glob("*.toml")}
    assert shipped <= words("devices.md")


def _with_its_folder(name: str) -> tuple[str, ...]:
    """Return a page and those of the folder that has its name."""
    return (f"{name}.md", *(f"{name}/{page.name}" for page in (DOCS / name).glob("*.md")))


_RUN = _with_its_folder("run")

DOCUMENTS: dict[str, tuple[tuple[str, ...], bool]] = {
    # By their schemas: the pages that tell of their keys, and whether also of their values.
    "conform/record/conform": (
        (*_with_its_folder("conform"), *_RUN),
        True,
    ),
    "diagnose/inspect/inspect": (("inspect.md",), True),
    "diagnose/layers/layers": (("layers.md", *_RUN), True),
    "rank/rank": (("rank.md",), False),
    "repair/repair": (
        (
            "repair/document.md",
            "repair/labels.md",
            "repair/methods.md",
            "repair/precision.md",
            "shifts.md",
            *_RUN,
        ),
        False,
    ),
    "run/run": (_RUN, True),
    "survey/record/survey": ((*_with_its_folder("survey"), *_RUN), False),
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_key_of_a_document_is_told(document: str) -> None:
    pages, with_values = DOCUMENTS[document]
    path = HOST / f"{document}.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    told = set(_keys(schema))
    assert len(told) > 30
    if with_values:
        told |= set(_choices(schema)) - {""}
    assert told <= set().union(*map(words, pages))


def test_the_numbers_of_operators_are_told() -> None:
    known = known_operators()
    cells = sum(len(one.types) for one in known.values())
    page = (DOCS / "conform.md").read_text(encoding="utf-8")
    assert f"{len(known)} operators have {cells} cells" in " ".join(page.split())
    for name in ("README.md", "CHANGELOG.md"):
        said = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert f"models of {len(known)} operators" in said


def test_every_strategy_and_operator_is_told() -> None:
    assert set(strategies()) <= words("differences.md")
    for domain in DOMAINS.names():
        names = {operator.name for operator in built_in_operators(domain)}
        assert names
        assert names <= words("operators.md")


def test_every_condition_and_set_is_told() -> None:
    ours = [one for domain in DOMAINS.names() for one in own_conditions(domain)]
    names = {name for one in ours for name in (one.name, *one.sets)}
    assert len(names) > 20
    assert names <= words("conditions.md")


@pytest.mark.slow
def test_the_picture_shows_a_check(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "picture.svg"
    with brief_checks():
        completed("check", EXAMPLE, "--limit", "20", "--no-near", "--out", run)
    draw = [sys.executable, *map(str, (DOCS / "pictures" / "make.py", run, "--out", out))]
    subprocess.run(draw, capture_output=True, timeout=300, check=True)
    for svg in (out, DOCS / "pictures" / "demo.svg"):
        text = svg.read_text(encoding="utf-8")
        assert "fashion_lenet4" in text
        assert "url(http" not in text


@pytest.mark.slow
def test_the_picture_of_a_search_can_be_made(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    out = tmp_path / "search.png"
    draw = [DOCS / "pictures" / "search.py", "--example", "fashion_lenet4", "--out", out]
    command = [sys.executable, *map(str, draw), "--first", "3"]
    subprocess.run(command, capture_output=True, timeout=300, check=True)
    image = cv2.imread(str(out))
    assert image is not None
    assert min(image.shape[:2]) > 400


def _docstring(module: Path) -> str:
    return ast.get_docstring(ast.parse(module.read_bytes())) or ""


def _anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _commands_and_spans(text: str) -> Iterator[str]:
    """Yield the lines that call edgeflare, and the code spans that are an option."""
    for line in text.splitlines():
        if line.startswith("edgeflare "):
            yield line
    yield from re.findall(r"`((?:edgeflare )?--[a-z][^`\n]*|edgeflare [^`\n]*)`", text)


def _options(command: Any) -> set[str]:
    """Return the long options of a command and of all below it."""
    if isinstance(command, LazyCommand):
        command = command.load()
    own = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    below = (_options(sub) for sub in getattr(command, "commands", {}).values())
    return {"--help", "--help-all"} | {option for option in own if option.startswith("--")}.union(
        *below
    )


def _keys(schema: Any) -> Iterator[str]:
    """Yield the names of all properties in a JSON Schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for value in schema.values():
            yield from _keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _keys(value)


def _choices(schema: Any) -> Iterator[str]:
    """Yield all texts that a JSON Schema enumerates."""
    if isinstance(schema, dict):
        yield from (value for value in schema.get("enum", []) if isinstance(value, str))
        for value in schema.values():
            yield from _choices(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _choices(value)
