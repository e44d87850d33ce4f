from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.errors import UserError
from edgeflare.tasks.task_registry import TASKS, find_task
from edgeflare.tasks.transcript.transcript_task import Transcript
from kept_decoders import kept_again

STEPS = Tensor("steps", (1, 4, 3), "float32")


def model(*outputs: Tensor, sample: NDArray[Any] | None = None) -> ModelOutputs:
    def of_seeds(_seeds: int) -> RawBatch:
        return RawBatch(np.zeros((1, 4, 3), np.float32) if sample is None else sample)

    return ModelOutputs("compressed.tflite", outputs, frozenset(), 0, (), of_seeds)


def logits_of(*paths: str, symbols: str = "ab_") -> RawBatch:
    """Return logits that are 5 for the symbol of each step, and 0 for the others."""
    at = [[symbols.index(symbol) for symbol in path] for path in paths]
    return RawBatch((5 * np.eye(len(symbols), dtype=np.float32))[np.array(at)])


def described(task: Transcript, *paths: str, symbols: str = "ab_") -> list[str]:
    decoder = kept_again(TASKS.find("transcript"), task.decoder(model(STEPS)))
    return [
        decoder.describe_answer(one) for one in decoder.read(logits_of(*paths, symbols=symbols))
    ]


def test_ctc_merges_repeated_symbols_and_drops_blanks() -> None:
    task = Transcript(vocabulary=("a", "b"))
    assert described(task, "aa_a", "a_bb", "____") == ['"aa"', '"ab"', '""']


def test_the_blank_is_where_it_is_said_to_be() -> None:
    task = Transcript(vocabulary=("a", "b"), blank=0)
    assert described(task, "aa_a", "a_bb", symbols="_ab") == ['"aa"', '"ab"']


def test_argmax_writes_a_symbol_for_each_step() -> None:
    task = Transcript(vocabulary=("a", "b", "c"), decoding="argmax")
    assert described(task, "aaba", symbols="abc") == ['"aaba"']


def test_words_are_what_the_separator_stands_between() -> None:
    task = Transcript(vocabulary=("a", " ", "bc"), decoding="argmax", separator=" ")
    decoder = task.decoder(model(STEPS))
    first, second = decoder.read(logits_of("ab a", "a  b", symbols="a b"))
    assert decoder.describe_answer(first) == '"abc a"'
    assert decoder.describe_answer(second) == '"a bc"'
    (view,) = decoder.views({"original": first, "device": second}, ("original", "device"))
    assert view.words == {"original": ("abc", "a"), "device": ("a", "bc")}
    assert view.separator == " "


def test_a_symbol_that_begins_with_the_separator_begins_a_word() -> None:
    task = Transcript(vocabulary=("▁a", "b", "▁"), decoding="argmax", separator="▁")
    assert described(task, "abab", "a_bb", symbols="ab_") == ['"ab▁ab"', '"a▁bb"']


def test_probabilities_are_told_from_logits() -> None:
    sums_to_one = np.full((9, 4, 3), 1 / 3, np.float32)
    task = Transcript(vocabulary=("a", "b"))
    assert task.decoder(model(STEPS, sample=sums_to_one)).meaning == "probabilities"
    assert task.decoder(model(STEPS, sample=sums_to_one - 1)).meaning == "logits"
    given = Transcript(vocabulary=("a", "b"), outputs="logits")
    assert given.decoder(model(STEPS, sample=sums_to_one)).meaning == "logits"


def test_outputs_that_are_no_numbers_are_invalid() -> None:
    decoder = Transcript(vocabulary=("a", "b")).decoder(model(STEPS))
    whole, broken = logits_of("a_b_", "a_b_").outputs.copy(), logits_of("a_b_").outputs.copy()
    broken[0, 2, 1] = np.nan
    first, _, failed = decoder.read(RawBatch(np.concatenate([whole, broken])))
    assert failed.failure == "invalid-output"
    assert first.differs(failed)
    assert failed.differs(first)
    assert first.strength_against(failed) is None
    assert failed.margin(first) == 0.0
    assert decoder.describe_answer(failed) == "nothing"
    (view,) = decoder.views({"original": first, "device": failed}, ("original", "device"))
    assert view.words == {"original": ("a", "b"), "device": None}


def test_one_text_of_all_seeds_is_warned_of() -> None:
    task = Transcript(vocabulary=("a", "b"))
    decoder = task.decoder(model(STEPS))
    silent = list(decoder.read(logits_of(*["____"] * 8)))
    alike = list(decoder.read(logits_of(*["a___"] * 8)))
    various = list(decoder.read(logits_of(*["a___"] * 7, "b___")))
    empty, same = task.warnings(silent, alike, None)
    assert empty.startswith("the original reads no word in all 8 seeds: check vocabulary, blank")
    assert same.startswith('the compressed model reads "a" in all 8 seeds: check vocabulary')
    assert task.warnings(None, various, None) == []
    assert task.warnings(silent[:7], alike[:7], None) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"vocabulary": []}, "vocabulary is empty"),
        ({"vocabulary": ["a", "b", "a"]}, "vocabulary has 'a' twice"),
        ({"vocabulary": ["a", ""]}, "vocabulary has an empty symbol: leave CTC's blank out"),
        ({"vocabulary": ["a", "b"], "blank": 3}, "blank is 3, but 2 symbols and the blank are"),
        ({"vocabulary": ["a", "b"], "blank": -1}, "blank is -1"),
        ({"vocabulary": ["a"], "decoding": "argmax", "blank": 0}, "blank is given, but with"),
        ({"vocabulary": ["a"], "decoding": "beam"}, "expected 'ctc' or 'argmax'"),
        ({"vocabulary": ["a", "b"], "separator": " "}, "no symbol is it or begins with it"),
        ({"vocabulary": ["a b", " "], "separator": " "}, "may only begin a symbol"),
        ({}, "vocabulary is missing"),
        ({"vocabulary": "ab"}, "vocabulary is 'ab'"),
    ],
)
def test_wrong_settings_are_one_line(
    settings: dict[str, Any], said: str, refusal: Callable[..., str]
) -> None:
    line = refusal(find_task, "transcript", settings)
    assert said in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (Transcript(vocabulary=("a", "b", "c")), "3 symbols and the blank: give 2 symbols"),
        (
            Transcript(vocabulary=("a",), decoding="argmax"),
            "has 1 symbols: give 3 symbols, in the order",
        ),
        (Transcript(vocabulary=("a", "b"), output="other"), "has no output 'other'"),
    ],
)
def test_a_vocabulary_that_does_not_fit_the_outputs_is_refused(
    task: Transcript, said: str, refusal: Callable[..., str]
) -> None:
    assert said in refusal(task.decoder, model(STEPS))


def test_outputs_without_steps_do_not_fit() -> None:
    with pytest.raises(UserError, match="the task transcript reads a value for each of at least 2"):
        Transcript(vocabulary=("a",)).decoder(model(Tensor("one", (1, 2), "float32")))
    assert Transcript.fits(Tensor("steps", (1, 1, 4, 3), "int8"))
    assert not Transcript.fits(Tensor("image", (1, 8, 8, 3), "int8"))
