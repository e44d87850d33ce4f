"""What the models of a pair take and give, as `pair.toml` and options say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from edgeflare.domains.image.preprocess import PRESETS, Preprocess, preset
from edgeflare.errors import UserError
from edgeflare.models.invocation import Invocation
from edgeflare.models.pair_file import Settings
from edgeflare.models.pair_input import PairInput
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.run_pair import DEFAULT_DOMAIN, DEFAULT_TASK


def read_interface(said: Settings, *, from_file: bool) -> PairInterface:
    """Return what the models of a pair take and give.

    Args:
        said: what `pair.toml` and options say.
        from_file: a `pair.toml` is among them, which has to say how images are preprocessed.

    Raises:
        UserError: a domain or task does not take what is said of it, or something is missing; or
            `[device]` says another task, or inputs that are others than the search changes.

    """
    here = _without_device(said, from_file=from_file)
    if said.device is None:
        return here
    merged = _as_on_device(said, said.device)
    try:
        return replace(here, device=_without_device(merged, from_file=from_file))
    except UserError as error:
        raise UserError(f"with what [device] says: {error}") from error


def _as_on_device(said: Settings, device: Settings) -> Settings:
    """Return the settings of a pair with what `[device]` says in their place.

    Raises:
        UserError: that is another task, an input that is not there, or another domain of one.

    """
    task = {"name": DEFAULT_TASK, **(said.task or {})}
    own = device.task or {}
    if own.get("name", task["name"]) != task["name"]:
        raise UserError(
            f"[device.task] says name = {own['name']!r}, but the task is {task['name']!r}: say"
            " other keys of that task"
        )
    inputs = said.inputs or {}
    for name, table in (device.inputs or {}).items():
        if name not in inputs:
            known = ", ".join(inputs) or "none, and [device.preprocess] is what images have"
            raise UserError(f"[device.inputs.{name}]: there is no input {name}; inputs are {known}")
        for key in _NOT_OF_THE_DEVICE & table.keys():
            raise UserError(
                f"[device.inputs.{name}]: {key} is what all arms have in common: remove it, and say"
                " other keys of the domain, such as front_end"
            )
    merged = replace(device.over(said), task=merged_tables(task, own))
    return replace(merged, inputs=merged_tables(inputs, device.inputs)) if device.inputs else merged


_NOT_OF_THE_DEVICE = {"domain", "tensor", "array", "search"}


def merged_tables(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with other values of single keys, also in the tables that it holds.

    A table that says another `name` replaces the one of `base` as a whole: its keys are those of
    something else.
    """
    merged = dict(base)
    for key, value in changes.items():
        before = base.get(key)
        merged[key] = value
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            named = before.get("name")
            if value.get("name", named) == named:
                merged[key] = merged_tables(before, value)
    return merged


def _without_device(said: Settings, *, from_file: bool) -> PairInterface:
    settings = dict(said.task or {})
    task = settings.pop("name", DEFAULT_TASK)
    if said.outputs not in (None, "auto"):
        settings["outputs"] = said.outputs
    invocation = Invocation(
        said.signature or "", said.shapes or {}, said.state or {}, said.frames or 0
    )
    if invocation.state and not invocation.frames:
        raise UserError(
            "a model with a state is run frame by frame: say frames = the steps of one clip beside"
            " [state]"
        )
    tables = (said.inputs or {}).items()
    for name in invocation.state:
        if any(name in (own, table.get("tensor")) for own, table in tables):
            raise UserError(
                f"[state] feeds the input {name}, which [inputs] describes too: remove its table"
            )
    inputs = _only_input(said, from_file) if said.inputs is None else _inputs(said, said.inputs)
    return PairInterface(inputs, task, settings, invocation)


def _only_input(said: Settings, from_file: bool) -> tuple[PairInput, ...]:
    domain = said.domain or DEFAULT_DOMAIN
    if domain == DEFAULT_DOMAIN:
        return (PairInput("", domain, _preprocess(said, from_file).to_json()),)
    _refuse_preprocessing(said, f"the domain is {domain!r}")
    return (PairInput("", domain),)


def _inputs(said: Settings, tables: Mapping[str, Mapping[str, Any]]) -> tuple[PairInput, ...]:
    if said.domain is not None:
        raise UserError("domain is given beside [inputs]: write it under each [inputs.NAME]")
    _refuse_preprocessing(said, "[inputs] says what each input is")
    return tuple(_input(name, dict(table)) for name, table in tables.items())


def _input(name: str, table: dict[str, Any]) -> PairInput:
    own = {}
    for key, default in (("domain", DEFAULT_DOMAIN), ("tensor", ""), ("array", "")):
        own[key] = table.pop(key, default)
        if not isinstance(own[key], str):
            raise UserError(f"[inputs.{name}]: {key} is {own[key]!r}; expected a name")
    search = table.pop("search", True)
    if not isinstance(search, bool):
        raise UserError(f"[inputs.{name}]: search is {search!r}; expected true or false")
    return PairInput(name, own["domain"], table, own["tensor"], own["array"], search)


def _refuse_preprocessing(said: Settings, why: str) -> None:
    for key in ("preset", "scale", "mean", "std", "resize", "channels", "layout", "rounding"):
        if getattr(said, key) is not None:
            raise UserError(
                f"{key} is preprocessing of images at the top level, but {why}: write it under"
                " [inputs.NAME] of an image"
            )


def _preprocess(said: Settings, from_file: bool) -> Preprocess:
    explicit = {key: getattr(said, key) for key in ("scale", "mean", "std")}
    absent = [key for key, value in explicit.items() if value is None]
    if from_file and said.preset is None and absent:
        raise UserError(
            f"[preprocess] says nothing of {', '.join(absent)}: give scale, mean and std "
            "in model input = (pixel / scale - mean) / std, or a preset: " + ", ".join(PRESETS)
        )
    changes = {key: value for key, value in explicit.items() if value is not None}
    for key in ("mean", "std"):
        if key in changes:
            changes[key] = tuple(changes[key])
    for key in ("resize", "channels", "layout", "rounding"):
        if getattr(said, key) is not None:
            changes[key] = getattr(said, key)
    return replace(preset(said.preset or "unit"), **changes)
