"""Methods of repair that other packages bring."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from edgeflare.class_registry import InstalledClasses
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair import candidate_plans as plans
from edgeflare.repair import repair_method
from edgeflare.repair.candidate_plans import candidate_plans
from edgeflare.repair.repair_method import RepairMethod
from edgeflare.repair.repair_request import DEFAULT_REQUEST, RepairRequest
from fitted_networks import judged, untold
from plugin_package import install_plugin

SOURCE = '''
from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.repair.repair_method import RepairMethod


class NoBiases(RepairMethod):
    """Sets the biases of all layers to zero."""

    in_place = integers = True

    def fit(self, network, progress):
        return [one.bias for one in network.layers if one.bias is not None]

    def write(self, network, fitted):
        edit = InPlaceEdit(network.content)
        for tensor in fitted:
            edit.set_values(tensor, 0 * network.graph.values(tensor))
        return edit.content()


class Wanting(RepairMethod):
    """Is not tried unless it is named, and serves nothing."""

    automatic = False

    def fit(self, network, progress):
        raise UserError("no layer of that kind")

    def write(self, network, fitted):
        return network.content
'''

POINTS = {"no-biases": "zeroing:NoBiases", "wanting": "zeroing:Wanting", "ranges": "zeroing:None"}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = install_plugin(tmp_path, "zeroing", SOURCE, {"edgeflare.repair_methods": POINTS})
    monkeypatch.syspath_prepend(package)
    others = InstalledClasses[RepairMethod](
        "edgeflare.repair_methods", "repair method", RepairMethod
    )
    monkeypatch.setattr(repair_method, "OTHERS", others)
    monkeypatch.setattr(plans, "OTHERS", others)


def names(**changes: object) -> list[str]:
    request: RepairRequest = structs.replace(DEFAULT_REQUEST, **changes)
    return [one.name for one in candidate_plans(request)]


@pytest.mark.usefixtures("installed")
def test_a_method_of_another_package_is_tried_behind_ours_where_it_is_allowed() -> None:
    assert names()[-1] == names(in_place=True)[-1] == "no-biases"
    assert names(method="no-biases", target="int8-only") == ["no-biases"]
    assert names(method="wanting") == ["wanting"]
    assert names().count("ranges") == 1
    assert names(method="ranges") == ["ranges"]


@pytest.mark.usefixtures("installed")
def test_what_it_writes_is_a_candidate() -> None:
    network = judged("example").network
    (plan,) = candidate_plans(structs.replace(DEFAULT_REQUEST, method="no-biases"))
    (made,) = plan.of(network).make(untold)
    assert made.name == "no-biases"
    after, biases = Graph(made.content), [one.bias for one in network.layers]
    assert not any(after.values(one).any() for one in biases if one is not None)
    assert len(made.content) == len(network.content)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"method": "wanting", "in_place": True}, "--method wanting rewrites the model"),
        ({"method": "wanting", "target": "int8-only"}, "--method wanting computes in float"),
        ({"method": "no-bias"}, "--method no-bias: unknown; did you mean 'no-biases'?"),
    ],
)
def test_what_cannot_be_asked_for_is_a_line(
    changes: dict[str, object], says: str, refusal: Callable[..., str]
) -> None:
    request = structs.replace(DEFAULT_REQUEST, **changes)
    assert says in refusal(candidate_plans, request)
