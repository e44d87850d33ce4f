"""The settings of a pair, from `pair.toml` or from options, checked key by key."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from edgeflare.errors import UserError
from edgeflare.models.original import is_callable
from edgeflare.models.preprocess import PRESETS, Channels, Resize
from edgeflare.regular_file import read_regular
from edgeflare.suggestion import suggestion
from edgeflare.tasks.classification import Outputs

FILE = "pair.toml"

MOST_BYTES = 2**20
"""The largest size of a `pair.toml`, which may come from a stranger."""

_CHOICES = {
    "preset": tuple(PRESETS),
    "resize": get_args(Resize),
    "channels": get_args(Channels),
    "domain": ("image",),
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
        classes: names of the classes.
        domain: image.
        outputs: auto, logits or probabilities.

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
    classes: Sequence[str] | None = None
    domain: str | None = None
    outputs: str | None = None

    def __post_init__(self) -> None:
        for key, choices in _CHOICES.items():
            value = getattr(self, key)
            if value is not None and value not in choices:
                raise UserError(
                    f"{key} is {value!r}{suggestion(value, choices)}; expected "
                    + " or ".join(map(repr, choices))
                )

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

    `resize` and `channels` belong to `[preprocess]`, and are taken at the top level too.

    Raises:
        UserError: the file cannot be read, or a key or a value is not what it may be.

    """
    try:
        table = tomllib.loads(read_regular(path, MOST_BYTES).decode())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from error
    preprocess = table.pop("preprocess", {})
    if not isinstance(preprocess, dict):
        raise UserError(f"{path}: preprocess has to be a table: write [preprocess] above its keys")
    said = _checked(path, "", table, _TOP) | _checked(path, "preprocess.", preprocess, _PREPROCESS)
    twice = sorted(table.keys() & preprocess.keys())
    if twice:
        raise UserError(f"{path}: {twice[0]} is given twice: keep the one in [preprocess]")
    for key in ("compressed", "seeds", "original"):
        if key in said and not is_callable_module(said[key]):
            said[key] = str(path.parent / Path(said[key]).expanduser())
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
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]


def _numbers(value: object) -> tuple[float, ...] | None:
    values = [_number(one) for one in (value if isinstance(value, list) else [value])]
    return tuple(one for one in values if one is not None) if None not in values else None


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return None
    return tuple(value)


_TEXT = (_text, 'text, such as "…"')
_NUMBER = (_number, "a number, such as 255.0")
_NUMBERS = (_numbers, "a number, or a list of one for each channel")
_TEXTS = (_texts, 'a list of names, such as ["cat", "dog"]')
_IMAGES = {"resize": _TEXT, "channels": _TEXT}
_TOP = {
    **dict.fromkeys(("name", "original", "compressed", "seeds", "domain", "outputs"), _TEXT),
    "classes": _TEXTS,
    **_IMAGES,
}
_PREPROCESS = {"preset": _TEXT, "scale": _NUMBER, "mean": _NUMBERS, "std": _NUMBERS, **_IMAGES}


def _checked(
    path: Path, prefix: str, table: Mapping[str, object], kinds: Mapping[str, Any]
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
