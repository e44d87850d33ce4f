"""The forms of answers that there are."""

from __future__ import annotations

from typing import Final, TypeAlias, get_args

from edgeflare.pages.answers.answer_form import AnswerForm, AnswerWords
from edgeflare.pages.answers.boxes import DetectionView
from edgeflare.pages.answers.classes import ClassesView
from edgeflare.pages.answers.masks import SegmentationView
from edgeflare.pages.answers.scores import ThresholdView
from edgeflare.pages.answers.texts import TranscriptView
from edgeflare.pages.answers.values import RegressionView

RecordedAnswer: TypeAlias = (
    ClassesView | ThresholdView | RegressionView | TranscriptView | DetectionView | SegmentationView
)
"""What a document may have; a model with several heads has one for each."""

FORMS: Final[tuple[type[AnswerForm], ...]] = get_args(RecordedAnswer)

_ANY_TASK: Final = AnswerWords(
    strength="how confidently the two sides disagree",
    decision="Decision",
)


def words_of(task: str) -> AnswerWords:
    """Return the words for the answers of a task, by its name."""
    return next((form.spoken for form in FORMS if form.task == task), _ANY_TASK)
