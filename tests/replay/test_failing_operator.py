"""The operator that is exported is the one that `explain` names as where it begins."""

from __future__ import annotations

from typing import Any

import pytest

from edgeflare.replay.failing_operator import where_it_begins

CONV = {"operator": 0, "name": "CONV_2D", "tensor": "conv"}
DENSE = {"operator": 7, "name": "FULLY_CONNECTED", "tensor": "dense"}
SOFTMAX = {"operator": 10, "name": "SOFTMAX", "tensor": "probabilities"}


def explanation(verdict: str, **parting: Any) -> dict[str, Any]:
    return {
        "verdict": {"name": verdict},
        "device_and_twin": {"onset": CONV, "first": True, "most": SOFTMAX} | parting,
        "twin_and_original": {"first": CONV, "most": DENSE, "coarse": []},
    }


@pytest.mark.parametrize("verdict", ["kernel", "several", "host-suspect"])
def test_it_is_where_device_and_twin_part_not_where_most_is_new(verdict: str) -> None:
    assert where_it_begins(explanation(verdict)) == CONV | {"what": "device and twin part here"}


def test_an_onset_before_which_not_all_was_seen_is_said_to_be_that() -> None:
    found = where_it_begins(explanation("kernel", first=False))
    assert found == CONV | {"what": "device and twin part here, or earlier"}


def test_of_compression_it_is_the_layer_that_took_most_of_the_margin() -> None:
    what = "twin and original part here, by more than quantization explains"
    assert where_it_begins(explanation("compression")) == DENSE | {"what": what}


def test_of_coarse_layers_it_is_the_first_that_is_an_operator() -> None:
    coarse = explanation("compression")
    given = {"operator": -1, "name": "INPUT", "tensor": "image", "kind": "saturated"}
    layers = [given, DENSE | {"kind": "range too wide", "share": 0.3}]
    coarse["twin_and_original"] |= {"most": None, "coarse": layers}
    what = "twin and original part here, range too wide"
    assert where_it_begins(coarse) == DENSE | {"what": what}


def test_where_none_is_named_there_is_none() -> None:
    nowhere = explanation("kernel", onset=None)
    assert where_it_begins(nowhere) is None
    unexplained = explanation("compression")
    unexplained["twin_and_original"]["most"] = None
    assert where_it_begins(unexplained) is None
