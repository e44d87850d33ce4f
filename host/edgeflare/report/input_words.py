"""What inputs, their values and their distances are called in a report, by the run's domain."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.models.run_pair import RunPair


@dataclass(frozen=True, slots=True)
class InputWords:
    """Words for the inputs of a domain.

    Attributes:
        one: an input.
        many: inputs.
        levels: the steps that distances are counted in.
        cells: what is counted of an input where it differs from its seed.
        unchanged: how a difference is read, in a sentence.

    """

    one: str = "input"
    many: str = "inputs"
    levels: str = "levels"
    cells: str = "cells"
    unchanged: str = ""


_WORDS = {
    "image": InputWords(
        "image",
        "images",
        "gray levels",
        "pixels",
        unchanged="In a difference, mid-gray is a pixel that did not change, lighter one that rose,"
        " darker one that fell.",
    ),
    "audio": InputWords(
        "sound",
        "sounds",
        "levels",
        "samples",
        unchanged="A difference is the trigger less its seed; waveform and player of it are"
        " magnified by the factor beside it, and its spectrogram is not. The spectrograms of a"
        " finding share their colours: the brightest is its loudest cell, the darkest 80 dB below.",
    ),
    "array": InputWords(
        "array",
        "arrays",
        unchanged="A plot has seed and trigger, and below them the change, which is drawn on the"
        " scale of its largest.",
    ),
}


def input_words(pair: RunPair) -> InputWords:
    """Return the words for the inputs of a run.

    Args:
        pair: pair in the run's document.

    """
    return _WORDS.get(pair.domain, InputWords())
