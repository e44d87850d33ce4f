"""What a run takes the models of its pair to take and give, as lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from edgeflare.domains.image.preprocess import Preprocess
from edgeflare.models.run_pair import InterfaceDescription, RunPair, Variable
from edgeflare.record.json_types import JsonValue
from edgeflare.run.run_header import RunHeader
from edgeflare.untrusted_text import printable

_MOST_LISTED = 32
"""Values of a setting that are listed; of more, such as anchors, only their number."""


_MOST_NAMES = 4
"""Variables that are named."""


def interface_lines(header: RunHeader) -> list[str]:
    """Return a line on each input, on the task, and on the state where there is one.

    What the device has of its own follows, where that is another input or other keys of the task.
    """
    pair = header.pair
    lines = _input_lines(pair)
    kinds = " and ".join(dict.fromkeys(decoder.meaning for decoder in header.arms.values()))
    task, settings = pair.task_name, pair.task_settings or {}
    lines.append(printable(f"task: {task}{_settings(settings)}; the models give {kinds}"))
    called = pair.invocation
    if called is not None and called.state:
        links = ", ".join(f"{made} feeds {fed}" for fed, made in called.state.items())
        lines.append(printable(f"state: {links}; {called.frames} frames in a clip"))
    elif called is not None and called.frames:
        windows = any("windows" in input_.settings for input_ in pair.inputs or ())
        what = "windows in an input" if windows else "frames in a clip"
        lines.append(f"{called.frames} {what}, an inference each")
    if variables := variables_in_words(pair):
        lines.append(f"variables: {variables}")
    if called is not None and called.signature:
        lines.append(printable(f"signature: {called.signature}"))
    if device := pair.device:
        lines += [f"on the device, {line}" for line in _input_lines(device) if line not in lines]
        there = device.task_settings or {}
        if there != settings:
            lines.append(printable(f"on the device, task: {task}{_settings(there)}"))
    return lines


def variables_in_words(pair: RunPair) -> str:
    """Return what the models of a pair keep of an inference for the next; empty for nothing.

    Args:
        pair: what a run says of it.

    """
    kept = pair.variables
    if kept is None:
        return ""
    if kept.compressed and kept.original == kept.compressed:
        said = [f"both models keep {_named(kept.compressed)}"]
    else:
        models = (("original", kept.original), ("compressed model", kept.compressed))
        said = [f"the {model} keeps {_named(some)}" for model, some in models if some]
    frames = pair.invocation.frames if pair.invocation else 0
    begin = f"each clip of {frames} frames, and kept within it" if frames else "each input"
    return printable(f"{'; '.join(said)}; they are reset before {begin}")


def _named(kept: Sequence[Variable]) -> str:
    """Return how many variables a model has, and the names of the first ones by operator."""
    by_operator: dict[tuple[str, int], list[str]] = {}
    for variable in kept[:_MOST_NAMES]:
        by_operator.setdefault((variable.operator, variable.operator_index), []).append(
            variable.name
        )
    said = [
        f"{', '.join(names)} of {operator} (operator {index})"
        for (operator, index), names in by_operator.items()
    ]
    more = len(kept) - _MOST_NAMES
    said += [f"{more} more"] if more > 0 else []
    return f"{len(kept)} from one inference to the next, {'; '.join(said)}"


def _input_lines(pair: InterfaceDescription) -> list[str]:
    if pair.inputs:
        lines = []
        for input_ in pair.inputs:
            name = f"input {input_.name}" if input_.name else "input"
            fixed = "" if input_.search else "; the search leaves it as each seed has it"
            lines.append(printable(f"{name}: {input_.domain}{_settings(input_.settings)}{fixed}"))
        return lines
    if pair.preprocess is not None:
        said = msgspec.convert(pair.preprocess, Preprocess)
        mean, std = (
            ", ".join(f"{value:g}" for value in values) for values in (said.mean, said.std)
        )
        layout = f", layout {said.layout}" if said.layout else ""
        rounded = "" if said.rounding == "half-away" else f", inputs rounded {said.rounding}"
        return [
            f"model input = (pixel / {said.scale:g} - {mean}) / {std}, channels {said.channels}"
            f"{layout}{rounded}, seeds of another size: {said.resize}"
        ]
    return [printable(f"input: {pair.domain}{_settings(pair.domain_settings or {})}")]


def _settings(settings: Mapping[str, JsonValue]) -> str:
    return "".join(f", {key} {_value(value)}" for key, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inner = dict(value)
        name = inner.pop("name", "")
        rest = ", ".join(f"{key} {_value(inner_value)}" for key, inner_value in inner.items())
        return f"{name} ({rest})".lstrip() if rest else str(name)
    if isinstance(value, list | tuple) and len(value) > _MOST_LISTED:
        return f"{len(value)} values"
    if isinstance(value, list | tuple):
        nested = (
            f"({_value(element)})" if isinstance(element, list | tuple) else element
            for element in value
        )
        return ", ".join(map(_value, nested))
    return f"{value:g}" if isinstance(value, float) else str(value)
