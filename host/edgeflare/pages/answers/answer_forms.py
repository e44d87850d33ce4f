"""The forms of answers that there are: EdgeFlare's own, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, get_args

import msgspec

from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.core.task import Decoder
from edgeflare.core.views import AnswerView
from edgeflare.errors import UserError
from edgeflare.pages.answers.answer_form import AnswerForm, AnswerWords
from edgeflare.pages.answers.boxes import DetectionView
from edgeflare.pages.answers.classes import ClassesView
from edgeflare.pages.answers.masks import SegmentationView
from edgeflare.pages.answers.package_answers import PACKAGE_FORMS, PackageAnswers
from edgeflare.pages.answers.scores import ThresholdView
from edgeflare.pages.answers.texts import TranscriptView
from edgeflare.pages.answers.values import RegressionView

RecordedAnswer: TypeAlias = (
    ClassesView
    | ThresholdView
    | RegressionView
    | TranscriptView
    | DetectionView
    | SegmentationView
    | PackageAnswers
)
"""What a document may have; a model with several heads has one for each."""

_FORMS: Final[tuple[type[AnswerForm], ...]] = get_args(RecordedAnswer)

_ANY_TASK: Final = AnswerWords(
    strength="how confidently the two sides disagree",
    decision="Decision",
)


def recorded(view: AnswerView, arms: Iterable[str]) -> RecordedAnswer:
    """Return a view as documents keep it.

    Args:
        view: as a decoder made it, which may be another package's.
        arms: arms that gave an answer.

    Raises:
        UserError: it is of no form that EdgeFlare or an installed package offers.

    """
    return view if isinstance(view, _FORMS) else PackageAnswers.of(view, arms)  # type: ignore[return-value]


def recorded_views(
    decoder: Decoder, answers: Mapping[Arm, Answer], compared: tuple[Arm, Arm]
) -> tuple[RecordedAnswer, ...]:
    """Return how answers to one input are shown, as documents keep it.

    Args:
        decoder: that of the compressed model on its device.
        answers: answers by arm, not of every arm; some of them failed.
        compared: the two arms in whose difference a deviation lies.

    Raises:
        UserError: a view is of no form that EdgeFlare or an installed package offers.

    """
    by_arm = {arm.value: answer for arm, answer in answers.items()}
    first, second = compared
    views = decoder.views(by_arm, (first.value, second.value))
    kept = tuple(recorded(view, by_arm) for view in views)
    # A decoder may be another package's, and may give values that its form does not have.
    return msgspec.convert(kept, tuple[RecordedAnswer, ...])


def words_of(task: str) -> AnswerWords:
    """Return the words for the answers of a task, by its name."""
    for form in _FORMS:
        if form.task == task:
            return form.spoken
    for name in PACKAGE_FORMS.names():
        try:
            form = PACKAGE_FORMS.find(name)
        except UserError:  # that of a task which this run has not
            continue
        if form.task == task:
            return form.spoken
    return _ANY_TASK
