from __future__ import annotations

from msgspec import UNSET

from detectors import answer_of, objects_decoder
from edgeflare.core.answer_view import DetectionView

FACE = (0.1, 0.1, 0.3, 0.3, 0.9, 0.0)
FAINT = (0.1, 0.1, 0.3, 0.3, 0.4, 0.0)
BIRD = (0.6, 0.6, 0.9, 0.9, 0.75, 1.0)


def test_views_mark_what_differs_among_the_compared_arms() -> None:
    decoder = objects_decoder()
    answers = {
        "original": answer_of(decoder, FACE, BIRD),
        "twin": answer_of(decoder, FACE, BIRD),
        "device": answer_of(decoder, FAINT, BIRD),
    }
    (view,) = decoder.views(answers, ("original", "device"))
    assert isinstance(view, DetectionView)
    shown = {
        arm: [(one.label, one.difference) for one in boxes or ()]
        for arm, boxes in view.boxes.items()
    }
    assert shown == {
        "original": [(0, "object-vanished"), (1, "")],
        "twin": [(0, ""), (1, "")],
        "device": [(1, "")],
    }
    first = (view.boxes["original"] or ())[0]
    assert (first.box, first.score) == ((0.1, 0.1, 0.3, 0.3), 0.9)
    assert [one.there for boxes in view.boxes.values() for one in boxes or ()] == [
        *(0.4, UNSET),
        *(UNSET, UNSET),
        UNSET,
    ]
    (other,) = decoder.views(
        {**answers, "device": answer_of(decoder, BIRD)}, ("original", "device")
    )
    assert [one.there for one in other.boxes["original"] or ()] == [0.0, UNSET]
    assert (view.threshold, view.overlap, view.classes) == (0.5, 0.5, ())


def test_an_answer_is_described_by_number_classes_and_scores() -> None:
    decoder = objects_decoder()
    several = answer_of(decoder, BIRD, FACE)
    assert decoder.describe_answer(several) == "2 objects: .90, .75"
    assert decoder.describe_answer(several, ("face", "bird")) == "2 objects: face .90, bird .75"
    assert decoder.describe_answer(answer_of(decoder, FACE)) == "1 object: .90"
    assert decoder.describe_answer(answer_of(decoder, FAINT)) == "no object"
