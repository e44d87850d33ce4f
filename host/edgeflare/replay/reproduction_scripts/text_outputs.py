"""Read the words that a model's outputs spell, and tell whether those of two models differ."""

from typing import Any


def read(tensors: Any, decoder: Any) -> Any:
    """Return the words that the largest output of each step spells."""
    symbols, values = decoder["symbols"], tensors[decoder["outputs"][decoder["at"]]["name"]]
    names, blank = symbols["names"], symbols["blank"]
    path = values.reshape(-1, len(names)).argmax(1).tolist()
    if blank is not None:
        path = [token for at, token in enumerate(path) if at == 0 or token != path[at - 1]]
    written = [names[token] for token in path if token != blank]
    separator = symbols["separator"]
    return [word for word in "".join(written).split(separator) if word] if separator else written


def describe(answers: Any, arm: Any, told: Any) -> Any:
    """Return the words of a model here, and those when the deviation was found."""
    found = [view["words"][arm] for view in told["finding"]["answers"]]
    return f"{answers} here, {found} when it was found"


def compare(one: Any, other: Any, _told: Any) -> Any:
    """Return whether the texts of two models deviate, and a line about how far."""
    return one != other, ""
