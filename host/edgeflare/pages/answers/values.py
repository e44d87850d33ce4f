"""Values, and how far those of the compared arms are apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from edgeflare.core.views import ValuesView
from edgeflare.pages.answers.answer_form import (
    AnswerBlock,
    AnsweredInput,
    AnswerForm,
    AnswerWords,
    DrawnPoint,
    in_order,
)
from edgeflare.pages.comparison_plot import ComparisonPlot, comparison_plot, figure
from edgeflare.record.json_types import Count, TwoNames

PLOT_BYTES = 4_000
"""Characters of the paths of one plot of values, about."""


MOST_POINTS = 40
"""Points that are kept to be drawn: more than a body has (33); of a face's mesh the farthest."""

SHOWN_POINTS = 12
"""Points that a card lists."""


class ShownPoint(msgspec.Struct, frozen=True):
    """A point that the arms see in the input.

    Attributes:
        number: position of the point among those of the output, from 0.
        distance: distance of the compared arms' points, in the unit of the tolerance; null where
            one failed.
        places: x and y by arm, as shares of the picture's width and height, without arms that
            failed; empty where the pair does not say where points lie in the picture.

    """

    number: Count
    distance: float | None
    places: Mapping[str, tuple[float, float]]


class RegressionView(AnswerForm, frozen=True, tag_field="form", tag="values"):
    """How far the values of the two compared arms are apart, and those that differ most.

    Attributes:
        measure: what the distance is, such as "relative distance".
        distance: distance of the two compared arms, in the measure's unit; null where one failed.
        tolerance: the greatest distance that is no deviation.
        compared: the two arms.
        size: how many values an arm gives.
        names: names of the values below.
        values: values of each arm, at most 16: those that differ most between the compared arms, in
            their order; null where the arm failed.
        points: the points that are farthest apart, at most 40, in their order; empty where the
            values are no points.

    """

    task: ClassVar[str] = "regression"
    spoken: ClassVar[AnswerWords] = AnswerWords(
        "differ by more than the tolerance",
        "the farthest apart first",
        "the distance of the two sides' values over the tolerance, less 1",
        "tolerances beyond the first, the strength of a finding",
    )
    measures: ClassVar[bool] = True
    table_columns: ClassVar[tuple[str, ...]] = ("distance", "tolerances")
    csv_columns: ClassVar[tuple[str, ...]] = ("distance", "tolerance", "measure")

    measure: str
    distance: float | None
    tolerance: Annotated[float, msgspec.Meta(gt=0)]
    compared: TwoNames
    size: Count
    names: tuple[str, ...]
    values: Mapping[str, tuple[float, ...] | None]
    points: Annotated[tuple[ShownPoint, ...], msgspec.Meta(max_length=MOST_POINTS)] = ()

    def wrong(self, place: str) -> Iterator[str]:
        """Yield values that are not as many as their names."""
        for arm, values in self.values.items():
            if values is not None and len(values) != len(self.names):
                yield f"{place}.values.{arm} has {len(values)} values, but names {len(self.names)}"

    def decision(self, arm: str) -> str:  # noqa: ARG002
        """Return how many values an arm gave."""
        return f"{self.size:,} values"

    def apart(self, compared: tuple[str, str]) -> str | None:  # noqa: ARG002
        """Return the distance, and how many times the tolerance it is."""
        if self.distance is None:
            return None
        where = f" in {self.head}" if self.head else ""
        return (
            f"{self.measure} of {' and '.join(self.compared)} {self.distance:.4g}{where}, "
            f"{self.distance / self.tolerance:.4g} times the tolerance {self.tolerance:g}"
        )

    @property
    def title(self) -> str | None:
        """How many times the tolerance the distance is."""
        if self.distance is None:
            return None
        return f"{self.distance / self.tolerance:.4g} times the tolerance"

    @property
    def tolerance_words(self) -> str:
        """The measure and the tolerance."""
        return f"{self.measure}, tolerance {self.tolerance:g}"

    def cell(self, column: str) -> str:
        """Return the distance, or how many tolerances it is."""
        if self.distance is None:
            return "–"
        return f"{self.distance if column == 'distance' else self.distance / self.tolerance:.4g}"

    def block(self, shown: AnsweredInput) -> DistanceBlock:  # noqa: ARG002
        """Return the distance of the compared arms against the tolerance, and their values."""
        known = {arm: one for arm in self.compared if (one := self.values.get(arm)) is not None}
        views = [ValuesView(np.array(values), self.names) for values in known.values()]
        plot = comparison_plot(tuple(known), views, PLOT_BYTES) if views else None
        named = len(self.names)
        rows, points = self._points()
        of = "" if named == self.size else f"The {named} of {self.size:,} values that differ most."
        if self.distance is None:
            words = f"the {self.measure} is not known"
            return DistanceBlock(self.head, words, None, 0.0, plot, of, rows, points)
        longest = max(self.distance, self.tolerance) or 1.0
        words = (
            f"{self.measure} {figure(self.distance)}, {figure(self.distance / self.tolerance)} "
            f"times the tolerance {figure(self.tolerance)}, which is the mark"
        )
        return DistanceBlock(
            self.head,
            words,
            round(100 * self.distance / longest, 1),
            round(100 * self.tolerance / longest, 1),
            plot,
            of,
            rows,
            points,
            len(self.points) - len(rows),
        )

    def _points(self) -> tuple[tuple[PointRow, ...], tuple[DrawnPoint, ...]]:
        """Return the rows of the points that are farthest apart, and the points upon the picture.

        Numbered are points that are farther apart than the tolerance.
        """
        known = [point for point in self.points if point.distance is not None]
        farthest = sorted(known, key=lambda point: -(point.distance or 0.0))[:SHOWN_POINTS]
        rows = [
            PointRow(
                str(point.number),
                figure(point.distance or 0.0),
                figure((point.distance or 0.0) / self.tolerance),
                (point.distance or 0.0) > self.tolerance,
            )
            for point in farthest
        ]
        drawn = []
        for point in self.points:
            number = str(point.number) if (point.distance or 0.0) > self.tolerance else ""
            for arm in in_order(point.places):
                if arm in self.compared:
                    x, y = (100 * min(max(share, -1.0), 2.0) for share in point.places[arm])
                    title = f"{arm}: point {point.number}"
                    drawn.append(DrawnPoint(arm, f"{x:.2f}%", f"{y:.2f}%", number, title))
        return tuple(rows), tuple(drawn)


class PointRow(msgspec.Struct, frozen=True):
    """A point of the compared arms.

    Attributes:
        number: position of the point among those of the output.
        distance: how far the two arms' points are apart, in the unit of the tolerance.
        tolerances: the same, over the tolerance.
        beyond: whether that is more than the tolerance.

    """

    number: str
    distance: str
    tolerances: str
    beyond: bool


class DistanceBlock(AnswerBlock, msgspec.Struct, frozen=True):
    """The values of the compared arms that differ most, and the distance against the tolerance.

    Attributes:
        head: output of the model; empty where it has only one.
        words: what the line and the mark are; or that the distance is not known.
        length: length of the distance's bar, in percent of the line.
        tolerance: the place of the tolerance on it, in percent.
        plot: these values of the two arms, or of the one that answered; None where neither did.
        of: how many values there are in all, in words; empty where all are shown.
        rows: the points that are farthest apart, the farthest first; empty where values are none.
        points: where the points lie in the picture, where that is known.
        more: how many points are left out.

    """

    template: ClassVar[str] = "answers/values.html.j2"
    head: str
    words: str
    length: float | None
    tolerance: float
    plot: ComparisonPlot | None
    of: str
    rows: tuple[PointRow, ...] = ()
    points: tuple[DrawnPoint, ...] = ()
    more: int = 0

    def drawn_points(self) -> tuple[DrawnPoint, ...]:
        """Return the points of the compared arms."""
        return self.points
