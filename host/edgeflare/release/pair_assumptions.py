"""What is assumed of two models and some inputs that come without a `pair.toml`.

The tolerance of values that nobody names is a tenth of how far the original's own values spread
over the inputs: a ratio of 20 dB, which good 8-bit files of networks stay within.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from edgeflare.campaign.pair_panel import host_arm
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.core.seeds import SeedChoice
from edgeflare.errors import UserError, path_suggestion
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.evaluator import HostModel
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.original import open_original
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.models.pair_toml import pair_toml
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.models.tflite_file import is_flatbuffer
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.assumptions.arrays import assumed_state
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.assumptions.class_names import assumed_classes
from edgeflare.release.assumptions.input_source import GivenInputs
from edgeflare.release.assumptions.inputs import assumed_inputs
from edgeflare.release.assumptions.outputs import assumed_outputs
from edgeflare.release.assumptions.picture_inputs import picture_size
from edgeflare.tasks.value_decoder import ValueAnswer
from edgeflare.trust import Trust

_RELATIVE: Final = 0.1
"""The tolerance of values that do not vary: a tenth of them."""

INPUTS: Final = 64
"""Inputs at most over which values are seen to spread."""

_SHARE: Final = 0.1
"""Share of their spread that values may be apart."""

_LEAST: Final = 2
"""Inputs from which on values spread."""


def assumed_of(compressed: Path, given: Settings) -> Assumption:
    """Return what is assumed of a pair whose compressed model is known.

    Values that are compared as numbers have no tolerance yet; `loaded_pair` measures one.

    Args:
        compressed: file of the compressed model.
        given: what the user says, where the inputs are among it.

    """
    content = read_model_file(compressed)
    original = given.original or ""
    broken = original.endswith(".tflite") and not is_flatbuffer(read_model_file(Path(original)))
    if broken or not is_flatbuffer(content) or given.seeds is None:
        return Assumption()  # whoever opens it says what is wrong
    graph = Graph(content, str(compressed))
    found = GivenInputs.at(Path(given.seeds))
    if not found.kind:
        return Assumption(refused=_nothing_known(found.path))
    inputs = assumed_inputs(graph, found, given)
    if given.outputs is not None:  # which only classes have
        return inputs
    state = assumed_state(graph, found)
    picture = picture_size(graph.tensors[graph.inputs[0]])
    outputs = assumed_outputs(graph, state, picture, found.arrays)
    names = Assumption()
    if outputs.classes and given.classes is None:
        names = assumed_classes(content, found, outputs.classes)
    return outputs.beside(names).beside(inputs)


def _nothing_known(path: Path) -> str:
    """Return that nothing at a path can be inputs, and what can."""
    known = "an .npz of arrays, or a folder of pictures, WAV or FLAC files or .npy files"
    if not path.exists():
        like = path_suggestion(path, lambda other: other.is_dir() or other.suffix == ".npz")
        return f"there are no inputs at {path}{like}: give {known} with --inputs"
    return f"{path} holds no inputs that can be read: give {known} with --inputs"


def loaded_pair(assumed: Assumption, given: Settings, decided: Trust) -> Pair:
    """Load a pair with what is assumed of it, a tolerance that is measured among it.

    Args:
        assumed: what `assumed_of` returned.
        given: what the user says.
        decided: the user's decision on Python functions.

    Raises:
        UserError: it is not what it should be.

    """
    task = assumed.settings.task or {}
    if task.get("name") != "regression":
        return _with_notes(assumed, given, decided)
    some = replace(assumed, settings=replace(assumed.settings, task={**task, "tolerance": 1.0}))
    measured = None
    if not assumed.refused:
        measured = measured_tolerance(_with_notes(some, given, decided))
    if measured is None:
        settled = {**task, "distance": "relative", "tolerance": _RELATIVE}
        note = f"values are the same where they are within {_RELATIVE:.0%} of each other"
    else:
        tolerance, inputs = measured
        settled = {**task, "tolerance": tolerance}
        note = (
            f"values are the same up to a distance of {tolerance:g}, a tenth of how far they spread"
            f" over {inputs} inputs"
        )
    first, *others = assumed.notes
    known = replace(assumed.settings, task=settled)
    return _with_notes(
        replace(assumed, settings=known, notes=(first, note, *others)), given, decided
    )


def _with_notes(assumed: Assumption, given: Settings, decided: Trust) -> Pair:
    pair = load_pair(None, given.over(assumed.settings), decided, "--inputs")
    return replace(pair, notes=(*pair.notes, *assumed.notes))


def assumed_toml(pair: Pair, folder: Path, lines: tuple[str, ...] = ()) -> str:
    """Return a `pair.toml` of a pair, with what was assumed, its notes, as comments.

    Args:
        pair: a pair whose notes say what was assumed.
        folder: where the file is to lie.
        lines: what the user has to complete; nothing is then said of inputs.

    """
    text = pair_toml(pair, folder, pair.name, pair.compressed, inputs=not lines)
    return "\n".join(
        [
            "# Written by edgeflare check. What was assumed, and may have to be corrected:",
            *(f"# - {note}" for note in pair.notes),
            text,
            *(["# What nobody knows but you; correct these lines:", *lines, ""] if lines else []),
            *_COMMENTS,
        ]
    )


_COMMENTS: Final = (
    "# Other tasks are threshold, detection, segmentation, transcript, regression: docs/tasks.md.",
    "# Of pictures, model input = (pixel / scale - mean) / std; others: docs/pairs/inputs.md.",
    "# [gates]",
    "# accuracy-drop = 0.01",
    "",
)


def measured_tolerance(pair: Pair) -> tuple[float, int] | None:
    """Return how far the values of a pair may be apart, and over how many inputs they were seen.

    The distance is Euclidean. The spread is the root of the mean squared distance of the original's
    values to their mean; where there is no original, of the compressed model's.

    Args:
        pair: a pair whose task is regression, with any tolerance.

    Returns:
        None where the values do not vary, or the models or inputs are not what they should be,
        which whoever opens the pair says.

    """
    try:
        answers = _values(pair)
    except UserError:
        return None
    known = [
        answer.values.astype(np.float64).ravel() for answer in answers if answer.failure is None
    ]
    if len(known) < _LEAST:
        return None
    values = np.stack(known)
    spread = float(np.sqrt(np.square(values - values.mean(axis=0)).sum(axis=1).mean()))
    tolerance = float(f"{_SHARE * spread:.3g}")
    return (tolerance, len(known)) if np.isfinite(spread) and tolerance > 0.0 else None


def _values(pair: Pair) -> list[ValueAnswer]:
    with ExitStack() as stack:
        opened = stack.enter_context(with_shapes_folded(pair))
        twin = stack.enter_context(closing(open_compressed(opened, TWIN_KERNELS)))
        inputs = ModelInputs(pair.interface, twin.signature.inputs, str(pair.compressed))
        seeds = inputs.load(pair.seeds, SeedChoice(limit=INPUTS), pair.classes)
        name, taken = str(pair.compressed), inputs
        model: HostModel = twin
        if pair.original is not None:
            name, model = pair.original, stack.enter_context(closing(open_original(pair, inputs)))
            taken = ModelInputs(pair.interface, model.signature.inputs, name, like=inputs)
        arm = host_arm(opened, name, model, taken, seeds)
        batch = arm.submit(arm.given(seeds.inputs, seeds.seed_ids)).result()
        return [answer for answer in arm.decoder.read(batch) if isinstance(answer, ValueAnswer)]
