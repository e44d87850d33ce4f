"""How an input, and the answers to it, are shown to people.

A domain chooses one of a few forms for its inputs, and a report draws it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_space import Input, InputSpace


class ImageView(msgspec.Struct, frozen=True):
    """An image.

    Attributes:
        pixels: (rows, columns, channels), uint8; the channels are gray, RGB or RGBA.

    """

    pixels: NDArray[np.uint8]


class SoundView(msgspec.Struct, frozen=True):
    """A mono sound, which is drawn and can be played.

    Attributes:
        wave: (samples,), int16.
        sample_rate: samples per second, in Hz.

    """

    wave: NDArray[np.int16]
    sample_rate: int


class CurvesView(msgspec.Struct, frozen=True):
    """Values that follow each other in time, as one curve for each series.

    Attributes:
        values: (time, series), numbers of any type.
        names: names of the series; numbered where there are none.
        lowest: the least that a value may be; -inf for no bound.
        highest: the most that a value may be; inf for no bound.

    """

    values: NDArray[np.generic]
    names: tuple[str, ...] = ()
    lowest: float = -inf
    highest: float = inf


class ValuesView(msgspec.Struct, frozen=True):
    """Values of one moment, such as the row of a table, as one bar each.

    Attributes:
        values: (values,), numbers of any type.
        names: names of the values; numbered where there are none.
        lowest: the least that a value may be; -inf for no bound.
        highest: the most that a value may be; inf for no bound.

    """

    values: NDArray[np.generic]
    names: tuple[str, ...] = ()
    lowest: float = -inf
    highest: float = inf


class PartsView(msgspec.Struct, frozen=True):
    """An input in parts, such as the frames of a clip, each in its own form.

    Attributes:
        parts: the form of each by its name, "frame 0".

    """

    parts: Mapping[str, InputView]


InputView: TypeAlias = "ImageView | SoundView | CurvesView | ValuesView | PartsView"
"""What a domain may choose from."""


def view_by_shape(input_: Input, space: InputSpace) -> CurvesView | ValuesView:
    """Return an array of numbers as curves, or as values where it has a single axis.

    The first of several axes is taken for time; all others together number the series.

    Args:
        input_: the input, of any shape.
        space: space that bounds the values.

    """
    if input_.ndim < 2:
        return ValuesView(input_.ravel(), lowest=space.lowest, highest=space.highest)
    curves = input_.reshape(input_.shape[0], int(np.prod(input_.shape[1:])))
    return CurvesView(curves, lowest=space.lowest, highest=space.highest)


class AnswerView(msgspec.Struct, frozen=True):
    """What of the answers to one input is kept in a run's document, to be shown.

    So reports need neither models nor tasks. The forms are those of `edgeflare.pages.answers`.

    Attributes:
        head: name of the output, or of the frame of a clip; empty where there is only one.

    """

    head: str
