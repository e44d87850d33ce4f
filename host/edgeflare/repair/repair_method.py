"""The seam of repair methods that other packages bring."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

from edgeflare.class_registry import InstalledClasses
from edgeflare.errors import EdgeFlareError, UserError, suggestion
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.builtin_methods import METHODS, MethodKind
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.repair_candidate import EnoughTried, StepProgress


class RepairMethod(ABC):
    """A method that changes a compressed model by what it fits to the original.

    A package makes it known under the name that `--method` takes by an entry point:

        [project.entry-points."edgeflare.repair_methods"]
        halve-biases = "my_package:HalveBiases"

    It is constructed without arguments. What it writes is a candidate beside those of the built-in
    methods, under the same name, and is checked, timed and judged like them: so it need not know
    whether it gains. It draws nothing, or from a generator with a seed of its own.

    Attributes:
        in_place: whether the file keeps its length, its operators and their order; one that does
            not is refused.
        integers: whether nothing is computed in float that was not before.
        automatic: whether "auto" tries it, behind the built-in methods.

    """

    in_place: ClassVar[bool] = False
    integers: ClassVar[bool] = False
    automatic: ClassVar[bool] = True

    @abstractmethod
    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> Any:
        """Return what is fitted, in a form that `write` knows.

        Args:
            network: the two models, their layers side by side, and at least one input to fit with.
            progress: is to be told how much is done, and of how much.

        Raises:
            UserError: the method cannot serve these models; the line says why, and others go on.

        """

    @abstractmethod
    def write(self, network: QuantizedNetwork, fitted: Any) -> bytes:
        """Return the compressed model's `.tflite` file with what was fitted; raises as `fit`."""


OTHERS: Final = InstalledClasses[RepairMethod](
    "edgeflare.repair_methods", "repair method", RepairMethod
)
"""The methods of other packages."""


def fitted_by_other(name: str, network: QuantizedNetwork, progress: StepProgress) -> bytes:
    """Return the file that a method of another package writes.

    Args:
        name: the method's name.
        network: as of `RepairMethod.fit`.
        progress: likewise.

    Raises:
        UserError: the method refuses, fails by an error of its own, writes no model, or another
            one than it says.

    """
    found = OTHERS.find(name)
    try:
        method = found()
        content = method.write(network, method.fit(network, progress))
    except (EdgeFlareError, EnoughTried):
        raise
    except Exception as error:  # whatever a foreign method raises; other methods go on
        why = f"it fails ({' '.join(f'{type(error).__name__}: {error}'.split())})"
        raise UserError(OTHERS.complaint(name, why)) from error
    if not isinstance(content, bytes):
        why = f"it writes {type(content).__name__}, and a model's file is bytes"
        raise UserError(OTHERS.complaint(name, why))
    operators = Graph(content, f"what the repair method '{name}' writes").operators
    if found.in_place and (len(content), operators) != (
        len(network.content),
        network.graph.operators,
    ):
        why = "it says in_place, and changes the file's length or its operators"
        raise UserError(OTHERS.complaint(name, why))
    return content


def method_kind(name: str) -> MethodKind:
    """Return what a method needs and does, one of ours or of another package.

    Raises:
        UserError: there is none of the name, or it cannot be used.

    """
    if name in METHODS:
        return METHODS[name]
    if name in OTHERS.names():
        found = OTHERS.find(name)
        return MethodKind(
            in_place=found.in_place, integers=found.integers, automatic=found.automatic
        )
    known = ("auto", *METHODS, *OTHERS.names())
    hint = suggestion(name, known, "did you mean {!r}? ")
    raise UserError(f"--method {name}: unknown; {hint}There are {', '.join(known)}.")
