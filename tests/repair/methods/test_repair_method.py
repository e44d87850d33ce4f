"""Methods of repair that other packages bring."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from edgeflare.class_registry import InstalledClasses
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair import repair_methods
from edgeflare.repair.candidate_store import StoredCandidates
from edgeflare.repair.repair_candidate import EnoughTried
from edgeflare.repair.repair_method import RepairMethod
from edgeflare.repair.repair_methods import candidate_plans, packages_of_others
from edgeflare.repair.repair_request import DEFAULT_REQUEST, RepairRequest
from fitted_networks import judged, untold
from plugin_package import install_plugin
from stored_repairs import REPAIR

SOURCE = '''
from dataclasses import replace

from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.repair.repair_candidate import CandidatePlan, RepairCandidate
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


class Failing(RepairMethod):
    """Fails by an error of its own."""

    automatic = False

    def fit(self, network, progress):
        return network.no_such_thing

    def write(self, network, fitted):
        return network.content


class Longer(Failing):
    """Says that the file keeps its length, and does not keep it."""

    in_place = True

    def fit(self, network, progress):
        return bytes(16)

    def write(self, network, fitted):
        return network.content + fitted


class Empty(Longer):
    """Writes no model."""

    def write(self, network, fitted):
        return fitted


class Nothing(Longer):
    """Writes nothing."""

    def write(self, network, fitted):
        return None


class Planless(Failing):
    """Plans nothing."""

    def plans(self, name, chains):
        return ()


class Barren(Failing):
    """Makes nothing."""

    def plans(self, name, chains):
        return (replace(chains.plan(name, name), make=lambda progress: ()),)


class Misplanned(Failing):
    """Fails where it is to say how candidates are made."""

    def plans(self, name, chains):
        return chains.no_such_thing


class Misnamed(Failing):
    """Calls its candidate as ours is called."""

    def plans(self, name, chains):
        made = RepairCandidate("ranges", chains.network.content, None)
        return (CandidatePlan(name, name, lambda progress: (made,)),)


class Chatty(Failing):
    """Says of its candidate what has no place in a document."""

    def plans(self, name, chains):
        made = RepairCandidate(name, chains.network.content, None, {"gain": 1})
        return (CandidatePlan(name, name, lambda progress: (made,)),)


class Reporting(Failing):
    """Says how far it is."""

    def fit(self, network, progress):
        progress(0, 1)
'''

CLASSES = (
    *("Wanting", "Failing", "Longer", "Empty", "Nothing", "Planless", "Barren", "Misplanned"),
    *("Misnamed", "Chatty", "Reporting"),
)
POINTS = {
    "no-biases": "zeroing:NoBiases",
    "ranges": "zeroing:None",
    "my wanting": "zeroing:Wanting",
    **{name.lower(): f"zeroing:{name}" for name in CLASSES},
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = install_plugin(tmp_path, "zeroing", SOURCE, {"edgeflare.repair_methods": POINTS})
    monkeypatch.syspath_prepend(package)
    others = InstalledClasses[RepairMethod](
        "edgeflare.repair_methods", "repair method", RepairMethod
    )
    monkeypatch.setattr(repair_methods, "OTHERS", others)


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
    (plan,) = candidate_plans(structs.replace(DEFAULT_REQUEST, method="no-biases"), network)
    (made,) = plan.make(untold)
    assert made.name == "no-biases"
    after, biases = Graph(made.content), [one.bias for one in network.layers]
    assert not any(after.values(one).any() for one in biases if one is not None)
    assert len(made.content) == len(network.content)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("wanting", "no layer of that kind"),
        ("failing", "repair method 'failing' of package zeroing: it fails (AttributeError: "),
        ("longer", "of package zeroing: it says in_place, and changes the file's length"),
        ("empty", "what the repair method 'empty' writes"),
        ("nothing", "of package zeroing: it writes NoneType, and a model's file is bytes"),
        ("planless", "of package zeroing: it plans no candidate"),
        ("barren", "of package zeroing: it makes no candidate"),
        ("misplanned", "of package zeroing: it fails (AttributeError: "),
        ("misnamed", "zeroing: it names a candidate ranges, which does not have the method's name"),
        ("my wanting", "zeroing: it names a candidate 'my wanting', and names have letters"),
        ("chatty", "of package zeroing: what it says of chatty cannot be stored: "),
    ],
)
def test_a_method_that_fails_is_a_line_and_others_go_on(method: str, says: str) -> None:
    network = judged("example").network
    (plan,) = candidate_plans(structs.replace(DEFAULT_REQUEST, method=method), network)
    with pytest.raises(UserError, match=re.escape(says)):
        plan.make(untold)


@pytest.mark.usefixtures("installed")
def test_a_wish_to_stop_goes_through_a_method() -> None:
    request = structs.replace(DEFAULT_REQUEST, method="reporting")
    (plan,) = candidate_plans(request, judged("example").network)
    with pytest.raises(EnoughTried):
        plan.make(_enough)


def _enough(_done: int, _of: int) -> None:
    raise EnoughTried


@pytest.mark.usefixtures("installed")
def test_a_repair_goes_on_with_the_same_version_of_a_package(tmp_path: Path) -> None:
    packages = packages_of_others(structs.replace(DEFAULT_REQUEST, method="wanting"))
    assert packages == ("zeroing 1.0",)
    StoredCandidates(tmp_path / "repair", REPAIR, resume=False)
    StoredCandidates(tmp_path / "repair", REPAIR, resume=True)
    other = structs.replace(REPAIR, packages=("zeroing 1.1",))
    with pytest.raises(UserError, match="another version of a repair method's package"):
        StoredCandidates(tmp_path / "repair", other, resume=True)


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
