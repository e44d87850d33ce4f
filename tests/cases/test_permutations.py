"""Models whose classes or outputs are in another order: the order is said first, and is blamed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from called_commands import call_here
from public_cases import copied_case


@pytest.mark.parametrize(
    ("case", "said", "agreement"),
    [
        (
            "label_order",
            "the compressed model's classes are the original's in another order: (zero → nine), "
            "(one → four), (two → eight), (three → seven), (four → two), (five → one) and 3 more; ",
            "mapped 100%",
        ),
        (
            "output_swapped",
            "the compressed model's outputs are swapped against the original's: "
            "(Identity → Identity_1), (Identity_1 → Identity); ",
            "swapped 98%",
        ),
    ],
)
def test_another_order_is_said_first_and_is_the_verdict(
    case: str, said: str, agreement: str, tmp_path: Path
) -> None:
    pair = copied_case(case, tmp_path)
    dry = call_here("search", pair, "--dry-run")
    assert "warning: " + said in " ".join(dry.out.split())
    run = tmp_path / "run"
    call_here(
        *("search", pair, "--out", run, "--max-queries", "1", "--strengthen", "0", "--shrink", "0")
    )
    document = json.loads((run / "run.json").read_text())
    assert document["warnings"][0].startswith(said)
    assert document["warnings"][0].endswith(agreement)
    assert not document["unmutated"]["systematic"]["flows"]
    seed = document["deviating_seeds"][0]["seed_id"]
    call_here("explain", run, str(seed))
    explained = json.loads((run / "explain.json").read_text())["findings"][str(seed)]
    assert explained["verdict"]["name"] == "other-order"
    assert explained["verdict"]["why"] == document["warnings"][0]
    assert explained["twin_and_original"]["layers"] == []


def test_labels_in_another_order_are_said_of_the_original(tmp_path: Path) -> None:
    """They count from 1. The two files are equal, so nothing is said of the compressed one."""
    pair = copied_case("label_order", tmp_path)
    content = dict(np.load(pair / "seeds.npz"))
    content["labels"] = (content["labels"] + 1) % 10
    np.savez(pair / "seeds.npz", **content)
    dry = call_here("search", pair, "--compressed", pair / "original.tflite", "--dry-run")
    (warning,) = [one for one in dry.out.split("warning: ")[1:] if "order" in one]
    assert " ".join(warning.split()).startswith(
        "the original's classes are the labels' in another order: (zero → nine), (one → zero), "
    )
    assert not any(word in dry.out for word in ("flow to", "score on", "cut off"))
