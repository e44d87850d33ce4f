"""Read the side of a threshold on which a model's score is, and compare those of two models."""

from typing import Any


def read(tensors: Any, decoder: Any) -> Any:
    """Return whether the score of each frame that counts is above the threshold."""
    values = tensors[decoder["tensor"]["name"]]
    if decoder["source"] is not None:
        values = (values - tensors[decoder["row"][decoder["source"]]["name"]]) ** 2
    scores = values.mean(1)
    rule = decoder.get("frames", {}).get("rule")
    if rule in ("worst", "mean"):
        scores = scores.max(keepdims=True) if rule == "worst" else scores.mean(keepdims=True)
    return (scores >= decoder["threshold"] - 1e-5 * decoder["tensor"]["scale"]).tolist()


def describe(answers: Any, arm: Any, told: Any) -> Any:
    """Return the sides of a model's scores here, and the one when the deviation was found."""
    return f"{answers} here, {told['arms'][arm]['label']} when it was found"


def compare(one: Any, other: Any, _told: Any) -> Any:
    """Return whether the answers of two models deviate, and a line about how far."""
    return one != other, ""
