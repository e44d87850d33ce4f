"""How confidently two arms disagree about one input."""

from __future__ import annotations

from edgeflare.core.answer import Answer


def strength(first: Answer, second: Answer) -> float | None:
    """How confidently two arms disagree: min(p_1[a] - p_1[b], p_2[b] - p_2[a]).

    a and b are their labels. None where an arm failed; 0 where the labels are equal.
    """
    a, b = first.label, second.label
    if a is None or b is None:
        return None
    p, q = first.probabilities, second.probabilities
    return min(float(p[a] - p[b]), float(q[b] - q[a]))
