"""The settings of a configuration, each as its Python type."""

from __future__ import annotations

from collections.abc import Mapping

Setting = bool | int | float | str | tuple[int, ...]
"""The value of a parameter."""

Configuration = Mapping[str, Setting]
"""The settings of all parameters of an operator, by name."""


def whole(configuration: Configuration, name: str) -> int:
    """Return a whole number; TypeError if the setting is none."""
    setting = configuration[name]
    if not isinstance(setting, int):
        raise TypeError(f"{name} is {setting!r}, no whole number")
    return int(setting)


def number(configuration: Configuration, name: str) -> float:
    """Return a number; TypeError if the setting is none."""
    setting = configuration[name]
    if not isinstance(setting, int | float):
        raise TypeError(f"{name} is {setting!r}, no number")
    return float(setting)


def word(configuration: Configuration, name: str) -> str:
    """Return a word; TypeError if the setting is none."""
    setting = configuration[name]
    if not isinstance(setting, str):
        raise TypeError(f"{name} is {setting!r}, no word")
    return setting


def yes(configuration: Configuration, name: str) -> bool:
    """Return whether a setting is on; TypeError if it is neither on nor off."""
    setting = configuration[name]
    if not isinstance(setting, bool):
        raise TypeError(f"{name} is {setting!r}, neither true nor false")
    return setting


def dimensions(configuration: Configuration, name: str) -> tuple[int, ...]:
    """Return a shape, or other whole numbers; TypeError if the setting is none."""
    setting = configuration[name]
    if not isinstance(setting, tuple | list):
        raise TypeError(f"{name} is {setting!r}, no shape")
    return tuple(setting)
