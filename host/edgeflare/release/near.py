"""How near to inputs as they come the nearest ones lie that are decided otherwise.

A search finds them for nearly every compressed model, also good ones, so a number alone says
little. The same search of a reference compression of the same original is its measure:
litert-quantizer's int8, with one scale for each channel and ranges from some inputs, which needs
the extra `repair`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.campaign.campaign_record import describe_run, search_into
from edgeflare.campaign.observer import Unobserved
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.query import Arm
from edgeflare.diagnose.layer_graphs import tflite_original
from edgeflare.errors import UserError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written
from edgeflare.record.atomic_file import write_atomically
from edgeflare.release.answers import seconds_per_input
from edgeflare.release.figures.check_figures import NearFigures, SearchedModel
from edgeflare.run.harm import HARMFUL
from edgeflare.run.nearness import measure_name, nearness_db
from edgeflare.run.plan import Plan
from edgeflare.run.run_document import RunDocument
from edgeflare.run.seed_ids import SeedIds
from edgeflare.stderr_diversion import diverted_stderr

SEEDS: Final = 8
"""Inputs that are searched from."""

_QUERIES: Final = 300
"""Queries of each seed to find an input that deviates, and as many of each found one to bring it
nearer, where there is time."""

MOST_SECONDS: Final = 60.0
"""Seconds of the search at most, whatever the time limit."""

_FEWER_QUERIES: Final = (150, 75, 30)
"""Queries where models are slow; in few steps, so that most machines ask as many. With fewer
nothing is found that would say anything."""

_CALIBRATION: Final = 100
"""Inputs that the reference compression takes its ranges from."""


def near_figures(
    opened: OpenedPair,
    places: Sequence[int],
    folder: Path,
    seconds: float,
    interrupt: Interrupt,
    kept: Callable[[str], None] = lambda _name: None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    fingerprint: str = "",
) -> NearFigures:
    """Search from a few inputs, and from the same ones with a reference compression.

    Args:
        opened: the pair, on one device.
        places: the positions of inputs among its seeds, those first that are searched first.
        folder: folder of the runs, which are `near` and `near_reference`.
        seconds: seconds that both searches may take together.
        interrupt: the user's wish to stop.
        kept: is told the name of each run's folder before it is made.
        progress: is called with how many searches are done, and how many there are.
        fingerprint: that of the pair, where it is known.

    Raises:
        UserError: the pair has no original that can be quantized, or the extra is not installed.

    """
    content = require_quantizable(opened.pair)
    inputs = opened.seeds.inputs[list(places[:_CALIBRATION])]
    ids = [opened.seeds.seed_ids[at] for at in places]
    rows = opened.panel.rows(Arm.ORIGINAL, inputs, ids[:_CALIBRATION])
    content = reference_int8(content, rows)
    queries = _queries(opened, seconds / 2)
    file = folder / "reference.tflite"
    write_atomically(file, content)
    with ExitStack() as stack:
        try:
            interface = replace(opened.pair.interface, device=None)
            pair = replace(
                opened.pair, compressed=file, interface=interface, fold_shapes=False, folded=None
            )
            profiles = [device.profile for device in opened.devices]
            reference = open_pair(pair, _plan(opened, ids[:SEEDS], queries), profiles, stack)
        except UserError as refused:
            raise UserError(
                "the int8 that litert-quantizer makes of this original, to compare with, does not"
                f" run ({refused})"
            ) from None
        kept("near")
        mine = _search(opened, ids[:SEEDS], folder / "near", queries, interrupt, fingerprint)
        progress(1, 2)
        kept("near_reference")
        path = folder / "near_reference"
        theirs = _search(reference, ids[:SEEDS], path, queries, interrupt)
        progress(2, 2)
    return NearFigures(
        measure=measure_name(mine),
        model=_figures(mine, "near"),
        reference=_figures(theirs, "near_reference"),
    )


def require_quantizable(pair: Pair) -> bytes:
    """Return the original that the reference compression is made of.

    Raises:
        UserError: the pair has none that can be quantized, or the extra is not installed.

    """
    content = read_model_file(tflite_original(pair))
    graph = Graph(content)
    if len(graph.inputs) > 1 or graph.tensors[graph.inputs[0]].dtype != "float32":
        raise UserError("only originals with one input of float32 are quantized to compare with")
    if find_spec("litert_quantizer") is None:
        raise UserError(
            "pip install 'edgeflare[repair]' brings the reference compression that it needs"
        )
    return content


def near_seconds(each: float) -> float:
    """Return about how many seconds it takes, where all arms take so many for an input.

    Half of the queries are needed, as on four pairs.
    """
    return min(MOST_SECONDS, 2 * SEEDS * _QUERIES * each)


def _queries(opened: OpenedPair, seconds: float) -> int:
    """Return how many queries of each kind go with some time, for each input."""
    most = seconds / seconds_per_input(opened) / SEEDS / 2
    for queries in (_QUERIES, *_FEWER_QUERIES):
        if queries <= most:
            return queries
    raise UserError("there was no time left for a search: give a longer --time-limit")


def _search(
    opened: OpenedPair,
    ids: Sequence[int],
    path: Path,
    queries: int,
    interrupt: Interrupt,
    fingerprint: str = "",
) -> RunDocument:
    header = describe_run(opened, _plan(opened, ids, queries), fingerprint)
    observer = Unobserved()
    return search_into(path, opened, header, observer=observer, interrupt=interrupt, overwrite=True)


def _plan(opened: OpenedPair, ids: Sequence[int], queries: int) -> Plan:
    return Plan(
        strategy=opened.pair.interface.opened_task.strategy,
        goal=Goal(Find.ANY),
        devices=tuple(device.profile.name for device in opened.devices),
        ensemble=opened.ensemble,
        max_queries=queries,
        shrink=queries,
        seed_ids=SeedIds.of(ids),
    )


def _figures(document: RunDocument, run: str) -> SearchedModel:
    entries = document.deviations
    distances = [near for entry in entries if (near := nearness_db(entry)) is not None]
    finite = [distance for distance in distances if distance < float("inf")]
    return SearchedModel(
        run=run,
        seeds=document.totals.seeds,
        found=len({entry.seed_id for entry in entries}),
        nearness_db=median(finite) if finite else None,
        area=document.nearness.area,
        harmed=sum(entry.harm in HARMFUL for entry in entries),
    )


_SIGNATURE = "serving_default"


def reference_int8(content: bytes, rows: NDArray[np.generic]) -> bytes:
    """Return a float model quantized to int8.

    Args:
        content: the `.tflite` of the original, see `require_quantizable`.
        rows: (n, *shape) inputs as it takes them, from which ranges are taken.

    Raises:
        UserError: the library cannot be imported, or does not quantize the model.

    """
    try:
        from litert_quantizer import quantizer, recipe  # noqa: PLC0415 - needs an extra
        from litert_quantizer.calibrator import Calibrator  # noqa: PLC0415
        from litert_quantizer.recipe_manager import RecipeManager  # noqa: PLC0415
        from litert_quantizer.utils import qsv_utils  # noqa: PLC0415
    except ImportError as error:
        raise UserError(f"litert-quantizer cannot be imported: {error}") from None
    graph = Graph(content)
    signed, key, name = _with_signature(content)
    shape = graph.tensors[graph.inputs[0]].shape
    samples = [{name: np.ascontiguousarray(row.reshape(shape))} for row in rows]
    rules, manager = recipe.static_wi8_ai8(), RecipeManager()
    manager.load_quantization_recipe(rules)
    try:
        with _silence():
            calibrator = Calibrator(bytearray(signed), qsv_update_func=qsv_utils.min_max_update)
            calibrator.calibrate({key: samples}, manager)
            made = quantizer.Quantizer(bytearray(signed), rules)
            result = made.quantize(calibrator.get_model_qsvs(), enable_progress_report=False)
    except Exception as error:  # whatever the library raises of a model that it does not take
        raise UserError(
            f"litert-quantizer does not quantize the original ({type(error).__name__}:"
            f" {str(error)[:200]})"
        ) from error
    return bytes(result.quantized_model)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what the library and the runtime behind it say of their progress off the terminal."""
    with diverted_stderr(), redirect_stderr(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _with_signature(content: bytes) -> tuple[bytes, str, str]:
    """Return a file with a signature, its key, and the name that it has for the only input."""
    model: Any = read_model(content)
    if model.signatureDefs:
        known = model.signatureDefs[0]
        return content, known.signatureKey.decode(), known.inputs[0].name.decode()
    graph = model.subgraphs[0]
    made = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = _SIGNATURE, 0
    made.inputs = [_named(f"input_{at}", tensor) for at, tensor in enumerate(graph.inputs)]
    made.outputs = [_named(f"output_{at}", tensor) for at, tensor in enumerate(graph.outputs)]
    model.signatureDefs = [made]
    return written(model), _SIGNATURE, "input_0"


def _named(name: str, tensor: int) -> Any:
    entry = schema.TensorMapT()
    entry.name, entry.tensorIndex = name, int(tensor)
    return entry
