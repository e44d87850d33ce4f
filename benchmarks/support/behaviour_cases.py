"""Commands whose documents and texts are recorded at one commit and compared with another.

A case is a list of commands that run one after the other in a folder of its own. All of them
together show each command, each document and each page in most of their forms: every strategy,
every task and domain of the examples and of `tests/cases`, surveys with conditions, gates, groups
and rare deviations, conformance runs of each operator, matrices, rankings, benches, fleets, and
the help of every command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from typer.main import get_command

from edgeflare.cli.app import app

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fashion_lenet4"
EXAMPLES = (EXAMPLE, ROOT / "examples" / "face_detection", ROOT / "examples" / "spoken_words")
PUBLIC_CASES = tuple(sorted(path.parent for path in (ROOT / "tests" / "cases").glob("*/pair.toml")))
PAIRS = ("lenet5_mnist_int8", "resnet20_cifar10_int8")
"""Pairs of another folder that are searched by every strategy too."""

STRATEGIES = (
    *("boundary", "boundary-mh", "dflare", "dflare-d", "dflare-r", "dflare-published"),
    *("diffchaser", "donor", "random"),
)
FINDS, TIES, RNG_SEEDS = ("any", "compression", "kernel"), ("exclude", "include"), (0, 1)
BUDGET = ("--first", "20", "--max-queries", "300", "--max-time", "100000", "--fail-on", "none")
UNREFINED = ("--shrink", "0", "--within", "none")
VARIANTS = {
    "refined": ("--strengthen", "50", "--shrink", "100"),
    "ensemble": (*UNREFINED, "--ensemble", "xnnpack,reference"),
    "two-devices": (*UNREFINED, "--device", "emulated-builtin", "--device", "emulated-reference"),
    "bounds": (*UNREFINED, "--max-linf", "16", "--max-l2", "300"),
    "total-queries": (*UNREFINED, "--total-queries", "600"),
    "coverage": (*UNREFINED, "--coverage", "0.5"),
}
BRIEF = ("--first", "6", "--max-queries", "60", "--max-time", "100000")
FILES = ("--html", "--junit", "--csv", "--summary")
OPERATORS = (
    *("ADD", "ARG_MAX", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CONCATENATION", "CONV_2D"),
    *("DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "GATHER", "LOGISTIC", "MAX_POOL_2D", "MEAN", "MUL"),
    *("PAD", "QUANTIZE", "RESHAPE", "RESIZE_BILINEAR", "SOFTMAX", "SPLIT", "STRIDED_SLICE"),
    *("TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
)
Command = tuple[str, ...]
"""Words behind `edgeflare`; `{out}` is the folder of the case."""


@dataclass(frozen=True, slots=True)
class Case:
    """Commands, one after the other.

    Attributes:
        name: of its folder in a recording.
        commands: each as its words.

    """

    name: str
    commands: tuple[Command, ...]


def cases(pairs: Path | None) -> Iterator[Case]:
    """Yield what is recorded, the cases that take longest first.

    Args:
        pairs: a folder with the further pairs `PAIRS`, which may be absent.

    """
    folders = [EXAMPLE, *(pairs / name for name in PAIRS if pairs)]
    for pair in folders:
        if (pair / "variants").is_dir():
            yield _variants_case(pair)
        yield _whole_case(pair)
    yield from _fleet_cases()
    for pair in (*EXAMPLES, *PUBLIC_CASES):
        yield _run_case(pair)
        yield _survey_case(pair)
    for pair in EXAMPLES:
        yield _exported_case(pair)
    yield from _comparison_cases()
    yield from _survey_cases()
    yield from _conform_cases()
    for pair in folders:
        yield from _search_cases(pair)
    yield from _listing_cases()


def _search(pair: Path, *options: str) -> Command:
    return ("search", str(pair), "--out", "{out}/run", *BUDGET, *options)


def _search_cases(pair: Path) -> Iterator[Case]:
    """Yield a search by every strategy, with every `--find`, and some with other options."""
    for (name, options), rng_seed in product(VARIANTS.items(), RNG_SEEDS):
        command = _search(pair, *options, "--rng-seed", str(rng_seed))
        yield Case(f"{pair.name}-{name}-{rng_seed}", (command,))
    for strategy, find, ties, rng_seed in product(STRATEGIES, FINDS, TIES, RNG_SEEDS):
        options = ("--strategy", strategy, "--find", find, "--ties", ties)
        command = _search(pair, *UNREFINED, *options, "--rng-seed", str(rng_seed))
        yield Case(f"{pair.name}-{strategy}-{find}-{ties}-{rng_seed}", (command,))


def _whole_case(pair: Path) -> Case:
    """Return a run and all that is made of it; repairing needs more seeds."""
    run = "{out}/run"
    return Case(
        f"{pair.name}-whole",
        (
            _search(pair, *VARIANTS["refined"], "--first", "40"),
            ("explain", run),
            ("inspect", run, "--max-inputs", "32"),
            ("replay", run, "--out", "{out}/replay", "--fail-on", "any"),
            ("report", run, *FILES),
            ("repair", run, "--method", "shifts", "--out", "{out}/repair", "--rounds", "2"),
            ("report", "{out}/repair", "--html"),
            ("repair", run, "--out", "{out}/repair-of-all", "--search-again"),
            ("report", "{out}/repair-of-all", "--html"),
        ),
    )


def _run_case(pair: Path) -> Case:
    """Return a short search of a pair of any task, and its explanation, replay and reports."""
    run, again = "{out}/run", "{out}/replay"
    elsewhere = ("--device", "emulated-reference")
    refined = ("--shrink", "20", "--strengthen", "10", "--fail-on", "none")
    return Case(
        f"{pair.name}-run",
        (
            ("search", str(pair), *BRIEF, *refined, "--out", run),
            ("explain", run, "--model-explorer"),
            ("replay", run, *elsewhere, "--out", again, "--fail-on", "any"),
            *(("report", folder, *FILES) for folder in (run, again)),
            ("report", run),
        ),
    )


def _exported_case(pair: Path) -> Case:
    """Return two runs that are compared, of which one is merged and a finding exported."""
    run, other = "{out}/run", "{out}/other"
    options = (*BRIEF, *UNREFINED, "--fail-on", "none")
    return Case(
        f"{pair.name}-exported",
        (
            ("search", str(pair), *options, "--out", run),
            ("search", str(pair), *options, "--strategy", "random", "--out", other),
            ("compare", run, other),
            # The figure names them, and is as wide as their names.
            ("compare", "run", "other", "--json", "--figure", "{out}/compared.svg"),
            ("export", run, "0", "--out", "{out}/finding.zip"),
            ("merge", run, "--out", "{out}/merged"),
            ("report", "{out}/merged", "--json"),
        ),
    )


def _survey_case(pair: Path) -> Case:
    """Return two surveys of a pair, of which the second is set beside the first."""
    asked = ("survey", str(pair), "--limit", "40", "--device-queries", "40")
    gates = ("--gate", "rate<0.5", "--gate", "rate<0.001")
    ensemble = ("--ensemble", "xnnpack,reference")
    first, second = "{out}/survey", "{out}/after"
    tokens = 'domain = "tokens"' in (pair / "pair.toml").read_text(encoding="utf-8")
    conditions = ("--conditions", "none" if tokens else "common", "--severities", "1")
    return Case(
        f"{pair.name}-survey",
        (
            (*asked, *conditions, *gates, "--findings", "5", "--out", first),
            ("report", first, *FILES),
            (*asked, *conditions, *ensemble, "--baseline", first, "--out", second),
            ("report", second, "--html", "--summary"),
        ),
    )


def _variants_case(pair: Path) -> Case:
    """Return the ranking of the pair's compressed model and its first variant."""
    options = ("--first", "20", "--max-queries", "300", "--max-time", "100000", "--shrink", "50")
    variant = sorted((pair / "variants").glob("*.tflite"))[:1]
    further = [text for path in variant for text in ("--compressed", str(path))]
    return Case(
        f"{pair.name}-rank",
        (("rank", str(pair), *further, "--out", "{out}/rank", *options),),
    )


def _comparison_cases() -> Iterator[Case]:
    """Yield rankings of models, benches of strategies, and matrices of kernel sets."""
    original = ("--compressed", str(EXAMPLE / "original.tflite"))
    ranked = ("--rng-seeds", "0,1", "--shrink", "20")
    yield Case("rank", (("rank", str(EXAMPLE), *original, *ranked, *BRIEF, "--out", "{out}/rank"),))
    compared = ("--strategy", "boundary", "--strategy", "random", "--rng-seeds", "0,1")
    for pair in EXAMPLES:
        bench = ("bench", str(pair), *compared, *BRIEF, "--out", "{out}/bench")
        yield Case(f"{pair.name}-bench", (bench,))
    every = ("--device", "emulated-all")
    unrefined = (*UNREFINED, "--fail-on", "none")
    matrix = "{out}/matrix"
    yield Case(
        "matrix-search", (("search", str(EXAMPLE), *every, *BRIEF, *unrefined, "--out", matrix),)
    )
    conform = ("conform", *every, "--ops", "ADD,SOFTMAX", "--models", "8", "--out", matrix)
    yield Case("matrix-conform", (conform,))


def _survey_cases() -> Iterator[Case]:
    """Yield surveys with rare deviations, with groups, and on two devices."""
    asked = ("survey", str(EXAMPLE), "--device-queries", "60", "--out", "{out}/survey")
    for name, options in {
        "rare": ("--rare", "--rare-queries", "200", "--conditions", "noise"),
        "groups": ("--groups", "label", "--ensemble", "xnnpack,reference"),
        "two-devices": ("--device", "emulated-builtin", "--device", "emulated-reference"),
    }.items():
        yield Case(f"survey-{name}", ((*asked, *options), ("report", "{out}/survey", *FILES)))


def _conform_cases() -> Iterator[Case]:
    """Yield a short conformance run of each of many operators, and some of all."""
    run = "{out}/conform"
    files = ("report", run, "--html", "--junit", "--summary", "--accepted")
    for operator, device in product(OPERATORS, ("emulated-builtin", "emulated-reference")):
        asked = ("conform", "--device", device, "--ops", operator, "--models", "30", "--out", run)
        yield Case(f"conform-{operator}-{device}", (asked, files))
    several = ("--models", "60")
    model = str(EXAMPLE / "compressed.tflite")
    options: dict[str, Command] = {
        "from": ("--device", "emulated-xnnpack", *several, "--from", model),
        "memo": ("--device", "emulated-xnnpack", *several, "--draw", "memo"),
        "graphs": ("--device", "emulated-builtin", *several, "--graphs"),
        "micro": ("--device", "emulated-micro", *several),
        "uniform": ("--device", "emulated-xnnpack", *several, "--rng-seed", "3"),
    }
    for name, words in options.items():
        yield Case(f"conform-{name}", (("conform", *words, "--out", run), files, ("report", run)))


def _fleet_cases() -> Iterator[Case]:
    """Yield what is made on a fleet of this machine, for which Ray is needed."""
    fleet = ("--fleet", "local", "--fleet-devices", "2")
    run = "{out}/run"
    unrefined = (*UNREFINED, "--fail-on", "none")
    yield Case(
        "fleet",
        (
            ("search", str(EXAMPLE), *BRIEF, *unrefined, *fleet, "--unit-seeds", "2", "--out", run),
            ("replay", run, *fleet, "--out", "{out}/replay"),
            ("explain", run, *fleet),
            ("report", run, *FILES),
            ("fleet", "status", run),
        ),
    )


def _listing_cases() -> Iterator[Case]:
    """Yield what is installed, and the help of every command."""
    listed = (("strategies",), ("operators",), ("conditions",), ("devices", "list"))
    shown = (("strategies", "boundary"), ("devices", "show", "emulated-builtin"))
    as_json: Sequence[Command] = (
        ("operators", "--json"),
        ("conditions", "--json"),
        ("conform", "--list", "--json"),
    )
    yield Case("lists", (*listed, *shown, *as_json, ("conform", "--list")))
    group: Any = get_command(app)
    yield Case("help", (("--help",), *((command, "--help") for command in group.commands)))
