"""`edgeflare explain --reduce`: the operators of a model that are wrong together."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from edgeflare.cli.known_issue_listing import issue_of_part
from edgeflare.conform.conformance_arms import conformance_on
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.graphs.wrong_part import WrongPart, wrong_part
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.devices.device import Device
from edgeflare.diagnose.explanation import Explanation
from edgeflare.diagnose.layer_difference import WrongTogether
from edgeflare.errors import UserError


@dataclass(slots=True)
class ModelReduction:
    """Cuts a model to the operators that are wrong together, once for each layer that is named.

    Attributes:
        content: the compressed file.
        device: connected; its owner closes it.
        seconds: what cutting may take for each layer.

    """

    content: bytes
    device: Device
    seconds: float
    _found: dict[int, WrongPart | None] = field(default_factory=dict)

    def told(self, explanation: Explanation) -> Explanation:
        """Return an explanation that names them, where no layer of all differs by itself."""
        onset = explanation.kernel_onset
        if explanation.verdict.name != "kernel" or onset.right_alone is None:
            return explanation
        if (place := onset.right_alone.operator_index) not in self._found:
            self._found[place] = self._reduced(explanation)
        if (part := self._found[place]) is None:
            return explanation
        together = WrongTogether(part.key.operator, part.arrangement)
        issue = issue_of_part(part, self.device.provenance)
        return replace(explanation, kernel_onset=replace(onset, together=together), issue=issue)

    def _reduced(self, explanation: Explanation) -> WrongPart | None:
        graph = self._graph()
        if graph is None or explanation.given is None or len(graph.inputs) != 1:
            return None
        value = graph.values[graph.inputs[0]]
        if explanation.given.size != value.size:
            return None
        operand = explanation.given.reshape((1, *value.shape)).astype(value.dtype)
        with ExitStack() as stack:
            opened = conformance_on(self.device, stack, lambda: False)
            return wrong_part(PosedModel(graph, (operand,), 1), opened.arms, self.seconds)

    def _graph(self) -> OperatorGraph | None:
        try:
            return read_operators(self.content).graphs[0].graph
        except UserError:  # none of its operators is known
            return None
