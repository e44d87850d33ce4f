"""The settings of a pair, from `pair.toml` or from options, checked key by key."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import Any, get_args

from edgeflare.core.tensor import Layout, Rounding
from edgeflare.domains.image.preprocess import PRESETS, Channels, Resize
from edgeflare.errors import UserError, suggestion
from edgeflare.outside_text import read_toml
from edgeflare.python_callable import is_callable
from edgeflare.record.json_types import JsonValue
from edgeflare.tasks.classification import Outputs
from edgeflare.tasks.detection.box_decodings import read_anchors

FILE = "pair.toml"

_CHOICES = {
    "preset": tuple(PRESETS),
    "resize": get_args(Resize),
    "channels": get_args(Channels),
    "layout": get_args(Layout),
    "rounding": get_args(Rounding),
    "outputs": ("auto", *get_args(Outputs)),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a pair, in a file or by options; None where one is not given.

    Attributes:
        name: what reports call the pair.
        original: path of the original model, or a Python callable.
        compressed: path of the compressed model.
        seeds: path of the seeds.
        preset: name of a preprocessing; the next three then change single values of it.
        scale: see `Preprocess`.
        mean: see `Preprocess`.
        std: see `Preprocess`.
        resize: none, stretch or center-crop.
        channels: rgb or bgr.
        layout: NHWC or NCHW; see `Preprocess`.
        rounding: half-away, half-even or truncate; see `quantize`.
        classes: names of the classes.
        domain: name of the domain of the models' only input.
        outputs: auto, logits or probabilities.
        task: what `[task]` says, its name among it.
        inputs: what each `[inputs.NAME]` says, by its name.
        state: outputs that feed an input of the next frame, by the input's name.
        shapes: a fixed shape for inputs with dynamic dimensions, by the input's name.
        frames: steps of a clip, or windows of an input.
        signature: name of the signature that is run.
        fold_shapes: whether what follows from fixed shapes is folded into constants.
        gates: limits for a release, by the names of their gates; infinity for no limit.
        device: what `[device]` says: the keys of `preprocess`, `task` and `inputs` that are others
            there.

    Raises:
        UserError: a value is not one of those that its key may have.

    """

    name: str | None = None
    original: str | None = None
    compressed: str | None = None
    seeds: str | None = None
    preset: str | None = None
    scale: float | None = None
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    resize: str | None = None
    channels: str | None = None
    layout: str | None = None
    rounding: str | None = None
    classes: Sequence[str] | None = None
    domain: str | None = None
    outputs: str | None = None
    task: Mapping[str, JsonValue] | None = None
    inputs: Mapping[str, Mapping[str, JsonValue]] | None = None
    state: Mapping[str, str] | None = None
    shapes: Mapping[str, tuple[int, ...]] | None = None
    frames: int | None = None
    signature: str | None = None
    fold_shapes: bool | None = None
    gates: Mapping[str, float] | None = None
    device: Settings | None = None

    def __post_init__(self) -> None:
        for key, choices in _CHOICES.items():
            value = getattr(self, key)
            if value is not None and value not in choices:
                raise UserError(
                    f"{key} is {value!r}{suggestion(value, choices)}; expected "
                    + " or ".join(map(repr, choices))
                )

    @property
    def says_values(self) -> bool:
        """Whether they say what values pixels are given to the models as."""
        return (self.preset, self.scale, self.mean, self.std) != (None,) * 4

    def over(self, base: Settings) -> Settings:
        """Return these settings, and those of `base` where these say nothing.

        A preset replaces the whole preprocessing of `base`.
        """
        if self.preset is not None:
            base = replace(base, preset=None, scale=None, mean=None, std=None, channels=None)
        said = {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None
        }
        return replace(base, **said)


def read_settings(path: Path) -> Settings:
    """Read a `pair.toml`; its paths are relative to its folder.

    `resize`, `channels`, `layout` and `rounding` belong to `[preprocess]`, and are taken at the top
    level too.

    Raises:
        UserError: the file cannot be read, or a key or a value is not what it may be.

    """
    table = _with_tables_for_names(_toml(path))
    preprocess = table.pop("preprocess", {})
    if not isinstance(preprocess, dict):
        raise UserError(f"{path}: preprocess has to be a table: write [preprocess] above its keys")
    said = _checked(path, "", table, _TOP) | _checked(path, "preprocess.", preprocess, _PREPROCESS)
    twice = sorted(table.keys() & preprocess.keys())
    if twice:
        raise UserError(f"{path}: {twice[0]} is given twice: keep the one in [preprocess]")
    for key in ("compressed", "seeds", "original"):
        if key in said:
            said[key] = _placed(path, said[key])
    if "device" in said:
        said["device"] = _device(path, said["device"])
    return _settings(path, said)


def gates_of_file(path: Path) -> Mapping[str, float]:
    """Return the limits of a file that has a table `[gates]`, as a `pair.toml` has, and no other.

    Raises:
        UserError: it cannot be read, or has something else, or no limits.

    """
    limits: Mapping[str, float] | None = _checked(
        path, "", _toml(path), {"gates": _TOP["gates"]}
    ).get("gates")
    if limits is None:
        raise UserError(f"{path}: has no limits: write [gates] above them")
    return limits


def _toml(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error


def _device(path: Path, table: Mapping[str, JsonValue]) -> Settings:
    """Return what `[device]` says: only the keys that are others on the device."""
    tables = _checked(path, "device.", _with_tables_for_names(table), _DEVICE)
    preprocess = tables.pop("preprocess", {})
    said = _checked(path, "device.preprocess.", preprocess, _PREPROCESS)
    return _settings(path, {**tables, **said})


def _with_tables_for_names(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with a table wherever a plain name stands for one that holds nothing else.

    These are `preprocess = "imagenet"` for its preset, `task = "threshold"` for its name,
    `inputs.sound = "audio"` for its domain, and an input's `front_end = "log-mel"` for its name.
    """
    made = dict(said)
    for key, only in (("preprocess", "preset"), ("task", "name")):
        if isinstance(name := made.get(key), str):
            made[key] = {only: name}
    if isinstance(inputs := made.get("inputs"), dict):
        made["inputs"] = {name: _input_table(input_) for name, input_ in inputs.items()}
    return made


def _input_table(said: object) -> object:
    table = {"domain": said} if isinstance(said, str) else said
    if isinstance(table, dict) and isinstance(name := table.get("front_end"), str):
        return {**table, "front_end": {"name": name}}
    return table


def _settings(path: Path, said: dict[str, Any]) -> Settings:
    """Return settings whose tables need nothing of the pair's folder but models and seeds."""
    if isinstance(anchors := said.get("task", {}).get("anchors"), str):
        # They count in the fingerprint as other settings do, and a run needs the file no more.
        read = read_anchors(path.parent / os.path.expanduser(anchors))
        said["task"] = {**said["task"], "anchors": read}
    # A run keeps the tables, and is opened from other folders: they name files absolutely.
    for key in said.keys() & {"task", "inputs"}:
        said[key] = _with_values_placed(path, said[key])
    try:
        return Settings(**said)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def is_callable_module(source: str) -> bool:
    """Return whether a source is `module:function`, which has no place in a folder."""
    return is_callable(source) and not source.rpartition(":")[0].endswith(".py")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # a whole number of more digits than a float has
        return None


def _numbers(value: object) -> tuple[float, ...] | None:
    values = [_number(entry) for entry in (value if isinstance(value, list) else [value])]
    return tuple(number for number in values if number is not None) if None not in values else None


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
        return None
    return tuple(value)


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else None  # type: ignore[return-value]


def _task(value: object) -> Mapping[str, JsonValue] | None:
    return value if isinstance(value, dict) and _text(value.get("name")) else None


def _table(value: object) -> Mapping[str, JsonValue] | None:
    return value if isinstance(value, dict) and value else None


def _tables(value: object) -> Mapping[str, JsonValue] | None:
    tables = isinstance(value, dict) and value and all(isinstance(v, dict) for v in value.values())
    return value if tables else None  # type: ignore[return-value]


def _limits(value: object) -> Mapping[str, float] | None:
    """Return limits by their names; `false` is no limit."""
    if not isinstance(value, dict) or not value:
        return None
    limits = {key: inf if limit is False else _number(limit) for key, limit in value.items()}
    return None if None in limits.values() else limits  # type: ignore[return-value]


def _links(value: object) -> Mapping[str, str] | None:
    links = isinstance(value, dict) and value and all(map(_text, value.values()))
    return value if links else None  # type: ignore[return-value]


def _shapes(value: object) -> Mapping[str, tuple[int, ...]] | None:
    if not isinstance(value, dict) or not value:
        return None
    shapes = {
        key: tuple(sizes)
        for key, sizes in value.items()
        if isinstance(sizes, list) and sizes and all(map(_count, sizes))
    }
    return shapes if len(shapes) == len(value) else None


def _placed(path: Path, source: str) -> str:
    """Return a source with its path in place of one that is relative to the pair's folder."""
    if is_callable_module(source):
        return source
    return str(path.parent / os.path.expanduser(source))


def _with_values_placed(path: Path, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_values_placed(path, part) for key, part in value.items()}
    if not isinstance(value, str) or not is_callable(value) or is_callable_module(value):
        return value
    return os.path.abspath(_placed(path, value))


_TEXT = (_text, 'text, such as "…"')
_NUMBER = (_number, "a number, such as 255.0")
_NUMBERS = (_numbers, "a number, or a list of one for each channel")
_TEXTS = (_texts, 'a list of names, such as ["cat", "dog"]')
_IMAGES = dict.fromkeys(("resize", "channels", "layout", "rounding"), _TEXT)
_INTERFACE = {
    "task": (_task, 'a name, such as "classification", or a table [task] with a name'),
    "inputs": (_tables, 'a table for each input: write [inputs.NAME] above domain = "…"'),
    "state": (_links, 'input = "output" for each state: write [state] above such a line'),
    "shapes": (
        _shapes,
        "input = [1, …] for each input with dynamic dimensions: write [shapes] above such a line",
    ),
    "frames": (_count, "a whole number of 1 or more"),
    "signature": _TEXT,
    "fold_shapes": (_flag, "true or false"),
    "gates": (_limits, "a number, or false, for each gate: write [gates] above rate = 0.01"),
    "device": (_table, "a table [device.task], [device.inputs.NAME] or [device.preprocess]"),
}
_DEVICE = {
    "task": (_table, "a table [device.task]"),
    "inputs": (_tables, "a table for each input: write [device.inputs.NAME] above its keys"),
    "preprocess": (_table, "a table [device.preprocess]"),
}
_TOP = {
    **dict.fromkeys(("name", "original", "compressed", "seeds", "domain", "outputs"), _TEXT),
    "classes": _TEXTS,
    **_IMAGES,
    **_INTERFACE,
}
_PREPROCESS = {"preset": _TEXT, "scale": _NUMBER, "mean": _NUMBERS, "std": _NUMBERS, **_IMAGES}


def _checked(
    path: Path,
    prefix: str,
    table: Mapping[str, object],
    kinds: Mapping[str, tuple[Callable[[object], object], str]],
) -> dict[str, Any]:
    checked = {}
    for key, value in table.items():
        if key not in kinds:
            raise UserError(
                f"{path}: unknown key {prefix}{key}{suggestion(key, kinds)}; keys are "
                + ", ".join(prefix + known for known in kinds)
            )
        read, expected = kinds[key]
        checked[key] = read(value)
        if checked[key] is None:
            raise UserError(f"{path}: {prefix}{key} is {value!r}; expected {expected}")
    return checked
