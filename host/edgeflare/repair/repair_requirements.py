"""What a repair needs of the pair: an original with weights that can be read, and seeds."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from edgeflare.errors import UserError
from edgeflare.models.compressed_model import dequantized
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_variables import pair_variables
from edgeflare.models.pair import Pair
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.run_pair import DEFAULT_DOMAIN, DEFAULT_TASK
from edgeflare.models.tflite_graph import Graph
from edgeflare.pages.facts import count_of
from edgeflare.repair.fitting.onnx_network import is_onnx, onnx_network
from edgeflare.repair.fitting.quantized_network import matched_layers
from edgeflare.repair.repair_methods import METHODS, allows_shifts, method_of
from edgeflare.repair.repair_request import DEFAULT_REQUEST, RepairRequest
from edgeflare.replay.past_run import PastRun

LEAST_SEEDS = 50
"""Ten seeds at least choose and ten judge."""


def original_file(pair: Pair, past: PastRun | None, request: RepairRequest) -> bytes | None:
    """Return the network that is fitted to, the original's; None where shifts alone are tried.

    Raises:
        UserError: shapes are folded, there is no original, models of clips keep a state in
            variables, the request needs an original with weights that can be read and of the
            network that was compressed, or it names a method that needs jax, which is missing.

    """
    if pair.fold_shapes:
        raise UserError(
            f"{pair.name} runs with its shapes folded, and a repair writes the model's own file,"
            " which that device refuses: convert the model with a fixed batch size, and search and"
            " repair it without --fold-shapes"
        )
    if pair.original is None:
        raise UserError(
            f"{pair.name} has no original model to repair towards: search with --original, and"
            " repair that run"
        )
    if request.method == "shifts":
        _require_image_classifier(pair.interface, pair.name)
    method = None if request.method == "auto" else method_of(request.method)
    if method is not None and method.differentiates:
        from edgeflare.whitebox import array_library  # noqa: F401, PLC0415 - refuses without jax
    if request.method == "shifts" or shifts_alone(pair, past, request):
        return None
    if not _has_float_file(pair):
        *some, last = METHODS
        raise UserError(
            f"the original {pair.original} is no .tflite or .onnx file, and {', '.join(some)} and"
            f" {last} are fitted to its weights: --method shifts repairs a run without them"
        )
    if pair.interface.invocation.frames and pair_variables(pair) is not None:
        raise UserError(
            f"{pair.name} keeps a state in variables, and a repair is fitted to single steps:"
            " convert the models with their state as inputs and outputs, and name it under [state]"
        )
    path, compressed = Path(pair.original), read_model_file(pair.compressed)
    if is_onnx(path):
        return onnx_network(compressed, path)
    return _float_network(compressed, read_model_file(path), str(path))


def _float_network(compressed: bytes, original: bytes, name: str) -> bytes:
    """Return the original's network with float weights, also where it stores them in 8 bits."""
    graph = Graph(original, name)
    computed = (tensor for layer in graph.layers for tensor in graph.fed(layer))
    if any(
        graph.tensors[tensor].scales and graph.tensors[tensor].dtype == "int8"
        for tensor in computed
    ):
        raise UserError(
            f"the original {name} computes in 8 bits, and a repair is fitted to float numbers: were"
            " original and compressed model swapped?"
        )
    if any(
        tensor.constant and tensor.scales and tensor.dtype == "int8" for tensor in graph.tensors
    ):
        original = dequantized(original, name)
    matched_layers(Graph(compressed, "the compressed model"), Graph(original, name))
    return original


def require_seeds(name: str, seeds: int) -> None:
    """Refuse a pair with too few seeds.

    Args:
        name: what the user calls the pair.
        seeds: how many it has.

    """
    if seeds < LEAST_SEEDS:
        raise UserError(
            f"{name} has {count_of(seeds, 'seed')}, and a repair needs at least {LEAST_SEEDS}, of"
            " which it fits with three fifths: give more seeds"
        )


def why_not_repaired(pair: Pair, seeds: int) -> str | None:
    """Return why a pair is not repaired by default; None where it is tried.

    As far as that shows before models are opened.

    Args:
        pair: a pair.
        seeds: how many it has.

    """
    try:
        _require_repairable(pair, None, seeds)
    except UserError as refused:
        return str(refused)
    if find_spec("litert_quantizer") is None:
        return "a repair needs litert-quantizer: pip install 'edgeflare[repair]'"
    return None


def can_be_repaired(pair: Pair, past: PastRun, seeds: int) -> bool:
    """Whether a repair takes a run as it stands, as far as that shows before models are opened.

    Args:
        pair: the run's models.
        past: the run.
        seeds: how many it has.

    """
    if past.document.replay is not None:
        return False
    try:
        _require_repairable(pair, past, seeds)
    except UserError:
        return False
    return True


def _require_repairable(pair: Pair, past: PastRun | None, seeds: int) -> None:
    require_seeds(pair.name, seeds)
    original_file(pair, past, DEFAULT_REQUEST)


def shifts_alone(pair: Pair, past: PastRun | None, request: RepairRequest) -> bool:
    """Whether "auto" tries shifts alone, since the original has no weights that can be read."""
    return (
        request.method == "auto"
        and pair.original is not None
        and not _has_float_file(pair)
        and tries_shifts(pair, past, request)
    )


def tries_shifts(pair: Pair, past: PastRun | None, request: RepairRequest) -> bool:
    """Whether shifts are among the candidates: of runs of image classifiers, where allowed."""
    return past is not None and allows_shifts(request) and is_image_classifier(pair.interface)


def _has_float_file(pair: Pair) -> bool:
    file = pair.original_file
    return file is not None and (is_onnx(file) or file.suffix.lower() == ".tflite")


def is_image_classifier(interface: PairInterface) -> bool:
    """Whether models are classifiers of one image."""
    return (
        interface.task == DEFAULT_TASK
        and interface.domain_name == DEFAULT_DOMAIN
        and len(interface.inputs) == 1
        and not interface.invocation.frames
    )


def _require_image_classifier(interface: PairInterface, name: str) -> None:
    """Refuse shifts of models of another kind."""
    if is_image_classifier(interface):
        return
    several = len(interface.inputs) > 1
    given = "several inputs" if several else f"the domain {interface.domain_name}"
    raise UserError(
        f"--method shifts is for classifiers of images with one input, and {name} is of {given} and"
        f" the task {interface.task}: leave --method away, and other methods are tried"
    )
