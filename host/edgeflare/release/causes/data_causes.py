"""Causes in the data: why nothing can be said of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from edgeflare.core.query import Arm
from edgeflare.pages.facts import count_of
from edgeflare.release.causes.cause import AGREES, Cause, KnownToRules, layers_seen
from edgeflare.release.figures.data import DataFigures
from edgeflare.statistics.proportion import share


def wrong_data(known: KnownToRules) -> Iterator[Cause]:
    """Yield why the inputs, their labels or the original cannot tell of the model."""
    data = known.figures.data
    if data is None:
        return
    for device in known.figures.devices[:1]:
        failed = device.decisions.failures(data.reference)
        if failed > _MANY * data.inputs:
            yield Cause(
                rule="data",
                sentence=f"The {data.reference} itself has no finite answer to {failed} of"
                f" {count_of(data.inputs, 'input')}",
                evidence=device.decisions.begins or "nothing can be held against it",
                next_step=f"mend the {_MODELS[data.reference]} first, or check the inputs",
            )
    if data.label_order is not None and data.label_order.after >= AGREES:
        yield Cause(
            rule="data",
            sentence=f"The labels have the classes in another order than the {data.reference} has"
            " them",
            evidence=str(data.label_order),
            next_step="correct the labels, and check again; those of sub-folders by a labels.txt"
            " beside them, a line for each score",
        )
    if data.other_reading is not None:
        yield Cause(
            rule="data",
            sentence=f"The {data.reference} was not trained on inputs as the pair prepares them",
            evidence=data.other_reading.in_words(),
            next_step="say in [preprocess] what it was trained on, and check again",
        )
    if data.right is None and data.inputs >= LEAST_INPUTS:
        yield from _unlabelled(data)
    yield from _at_chance(data)


def _unlabelled(data: DataFigures) -> Iterator[Cause]:
    """Yield why inputs without labels tell nothing."""
    if data.guessed and data.reference is Arm.ORIGINAL:  # kernels do not hang on it
        yield Cause(
            rule="data",
            sentence="How the inputs are prepared is a guess, and without labels nobody sees"
            " whether it is right",
            evidence=data.guessed,
            next_step="say --preset, or --mean and --std, or give labels",
        )
    if data.commonest_share is not None and data.commonest_share >= _ALIKE:
        yield Cause(
            rule="data",
            sentence=f"The {data.reference} gives the same answer to {data.commonest_share:.0%} of"
            " the inputs",
            evidence="such inputs, or inputs prepared so, cannot show what compression changes",
            next_step="give inputs that vary, with labels, or correct [preprocess]",
        )


def _at_chance(data: DataFigures) -> Iterator[Cause]:
    """Yield why an arm that others are held against knows too little for that."""
    if data.right is None or data.labelled < LEAST_INPUTS:
        return
    if data.right == 0:
        yield Cause(
            rule="data",
            sentence=f"The {data.reference} is right on none of {data.labelled} inputs, so no"
            " loss of accuracy would show",
            evidence="the labels, the preprocessing, or a tolerance do not fit it",
            next_step="look whether they belong to the model, or allow more in [task]",
        )
    if data.guessing_accuracy is None:
        return
    seen = share(data.right, data.labelled)
    better, room = seen.value - data.guessing_accuracy, 1.0 - data.guessing_accuracy
    if better < _BETTER * room:
        yield Cause(
            rule="data",
            sentence=f"The {data.reference} is not better than guessing"
            if seen.low <= data.guessing_accuracy
            else f"The {data.reference} goes {better / room:.1%} of the way from guessing to always"
            f" being right, and {_BETTER:.0%} are the least to hold others against",
            evidence=f"it is right on {seen.value:.1%} of {data.labelled} inputs ({seen.low:.1%} to"
            f" {seen.high:.1%}), and guesses as frequent as its decisions would be on"
            f" {data.guessing_accuracy:.1%}",
            next_step="look whether labels, preprocessing and model belong together",
        )


def few_inputs(known: KnownToRules) -> Iterator[Cause]:
    """Yield that a device was asked about fewer inputs, or different ones, than decide anything."""
    data, inputs = known.figures.data, known.figures.fewest_inputs
    if data is None:
        return
    if data.different is not None and data.different < min(inputs, LEAST_INPUTS):
        yield Cause(
            rule="data",
            sentence=f"Of {count_of(inputs, 'input')} no more than {data.different} are different"
            " ones, which cannot decide anything",
            evidence=f"{LEAST_INPUTS} are the least, and a repeated one says nothing new",
            next_step="give more inputs with --inputs, with labels where there are some",
        )
    if inputs < LEAST_INPUTS:
        cut_off = inputs < data.available
        yield Cause(
            rule="data",
            sentence=f"{count_of(inputs, 'input')} cannot decide anything",
            evidence=f"{LEAST_INPUTS} are the least, some hundreds decide most",
            next_step="go on with --resume, and a longer --time-limit"
            if cut_off
            else "give more inputs with --inputs, with labels where there are some",
        )


def unjudged_changes(known: KnownToRules) -> Iterator[Cause]:
    """Yield that many decisions changed of which nobody knows what is right."""
    for device in known.figures.devices:
        its = device.decisions
        if its.by_file is None or Arm.ORIGINAL in its.right or not its.inputs:
            continue
        seen = share(its.changes.strictly, its.inputs)
        evidence = "no fault of the file and no kernel explains them"
        if not layers_seen(known.figures):
            evidence += ", as far as was seen without the layers"
        if seen.low > _MOST:
            yield Cause(
                rule="accuracy",
                sentence=f"{its.changes.strictly} of {its.inputs} decisions changed",
                evidence=evidence,
                next_step="give inputs with labels, and look whether both models belong together",
            )
        if seen.low > _MANY:
            yield Cause(
                rule="changes",
                sentence=f"{its.changes.strictly} of {its.inputs} decisions changed, and without"
                " labels nobody can say whether for the worse",
                evidence=evidence,
                next_step="give inputs with labels",
            )


LEAST_INPUTS: Final = 20
"""Inputs below which nothing is decided."""

_MANY: Final = 0.05
"""Share of inputs that the original may fail on, or whose decision may change where nobody knows
what is right, before nothing can be said of the model."""

_MOST: Final = 0.3
"""Share of the decisions that no compression may change, whatever is right."""

_ALIKE: Final = 0.95
"""Share of the inputs with one decision from which on unlabelled ones tell nothing."""

_BETTER: Final = 0.15
"""Part of the way from guessing to being always right that an original has to have gone: Cohen's
kappa."""

_MODELS: Final = {Arm.ORIGINAL: "original", Arm.TWIN: "compressed model"}
