"""The forms of answers that there are: EdgeFlare's own, and those of installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias, get_args

import msgspec

from edgeflare.class_registry import InstalledClasses
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.core.task import Decoder
from edgeflare.core.views import AnswerView
from edgeflare.errors import UserError
from edgeflare.pages.answers.answer_form import AnswerBlock, AnsweredInput, AnswerForm, AnswerWords
from edgeflare.pages.answers.boxes import DetectionView
from edgeflare.pages.answers.classes import ClassesView
from edgeflare.pages.answers.masks import SegmentationView
from edgeflare.pages.answers.scores import ThresholdView
from edgeflare.pages.answers.texts import TranscriptView
from edgeflare.pages.answers.values import RegressionView
from edgeflare.pages.page import Block, Sentences
from edgeflare.record.json_types import JsonValue, plain_json, read_text

PACKAGE_FORMS = InstalledClasses[AnswerForm]("edgeflare.answers", "form of answers", AnswerForm)


class PackageAnswers(AnswerForm, frozen=True, tag_field="form", tag="package"):
    """Answers of a form that another package brings.

    A run is passed on to people who lack the package: what was decided is kept in words for them.

    Attributes:
        decisions: what was decided in words, by arm.
        view: the answers as the package's form has them, with the name of that form under `form`.

    """

    task: ClassVar[str] = ""
    spoken: ClassVar[AnswerWords] = AnswerWords()

    decisions: Mapping[str, str]
    view: Mapping[str, JsonValue]

    @classmethod
    def of(cls, view: AnswerView, arms: Iterable[str]) -> PackageAnswers:
        """Return a view of a package's form as documents keep it.

        Args:
            view: as the package's decoder made it.
            arms: arms that gave an answer.

        Raises:
            UserError: no installed package offers the form.

        """
        form = type(view)
        name = form.__struct_config__.tag
        if not (
            isinstance(view, AnswerForm)
            and isinstance(name, str)
            and name in PACKAGE_FORMS.names()
            and PACKAGE_FORMS.find(name) is form
        ):
            raise UserError(
                f"a decoder shows its answers as {form.__module__}.{form.__qualname__}, which is no"
                " form of answers that a package offers: derive it from AnswerForm with the tag of"
                " its entry point in the group edgeflare.answers"
            )
        said = {arm: view.decision(arm) for arm in arms}
        return cls(view.head, said, plain_json(view))

    def opened(self) -> AnswerForm:
        """Return the answers in the package's own form; these where it is not installed."""
        try:
            return self._converted()
        except UserError:
            return self

    def wrong(self, place: str) -> Iterator[str]:
        """Yield what the package's form says is wrong, where it is installed."""
        if self.view.get("form") not in PACKAGE_FORMS.names():
            return
        try:
            yield from self._converted().wrong(f"{place}.view")
        except UserError as error:
            yield f"{place}.view: {error}"

    def decision(self, arm: str) -> str:
        """Return the words that were kept of what an arm decided."""
        return self.decisions.get(arm, "–")

    def block(self, shown: AnsweredInput) -> PageBlocks:  # noqa: ARG002
        """Return what shows them, in words."""
        form = self.view.get("form")
        said = f"The package that offers the answers {form!r} shows more, where it is installed."
        return PageBlocks(self.head, (Sentences((said,)),))

    def _converted(self) -> AnswerForm:
        form = PACKAGE_FORMS.find(str(self.view.get("form")))
        try:
            return msgspec.convert(self.view, form, dec_hook=read_text)
        except msgspec.ValidationError as error:
            raise UserError(str(error)) from None


class PageBlocks(AnswerBlock, msgspec.Struct, frozen=True):
    """The answers of one head as blocks of a page, for forms without a template of their own."""

    template: ClassVar[str] = "answers/page_blocks.html.j2"
    head: str
    blocks: Sequence[Block]


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
