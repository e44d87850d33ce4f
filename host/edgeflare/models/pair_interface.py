"""What the models of a pair take and give: inputs, task, and how they are called on one input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from edgeflare.core.domain import Domain
from edgeflare.core.task import Task
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import UserError
from edgeflare.models.invocation import Invocation
from edgeflare.models.pair_input import PairInput
from edgeflare.models.post_processing import PostProcessing
from edgeflare.models.run_pair import (
    DEFAULT_DOMAIN,
    DEFAULT_TASK,
    InterfaceDescription,
    InvocationDescription,
)
from edgeflare.python_callable import is_callable
from edgeflare.tasks.task_registry import find_task


@dataclass(frozen=True, slots=True)
class PairInterface:
    """What the models of a pair take and give.

    Attributes:
        inputs: at least one, of which the search changes one at least.
        task: name of the task.
        task_settings: what the task is constructed with, as plain JSON values.
        invocation: how the models are called; its names are those of the compressed model.
        device: what stands around the model on the device, where the product encodes its inputs or
            reads its outputs otherwise there; None where that is as everywhere else.
        opened_task: the task itself.
        post_processing: the function that makes of outputs what the task reads; None where it reads
            the outputs themselves.

    """

    inputs: tuple[PairInput, ...] = (PairInput(""),)
    task: str = DEFAULT_TASK
    task_settings: Mapping[str, Any] = field(default_factory=dict)
    invocation: Invocation = field(default_factory=Invocation)
    device: PairInterface | None = None
    opened_task: Task = field(init=False, repr=False, compare=False)
    post_processing: PostProcessing | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Construct the task.

        Raises:
            UserError: there is none of the name, or it does not take its settings; or the search
                may change no input, or several that are not alike.

        """
        task = find_task(self.task, self.task_settings)
        function = None
        if task.post_processing and task.processed is not None:
            function = PostProcessing(task.post_processing, task.processed)
        object.__setattr__(self, "opened_task", task)
        object.__setattr__(self, "post_processing", function)
        _require_alike(self.searched)

    @property
    def searched(self) -> tuple[PairInput, ...]:
        """The inputs that the search changes."""
        return tuple(one for one in self.inputs if one.search)

    @property
    def domain(self) -> Domain:
        """The domain of the inputs that the search changes."""
        return self.searched[0].opened_domain

    @property
    def domain_name(self) -> str:
        """The name of that domain."""
        return self.searched[0].domain

    @property
    def on_device(self) -> PairInterface:
        """What stands around the model on the device."""
        return self if self.device is None else self.device

    @property
    def functions(self) -> tuple[str, ...]:
        """The Python functions that this names, those of the device last."""
        front_ends = (front_end_function(one.settings) for one in self.inputs)
        named = [one for one in front_ends if one is not None]
        if self.post_processing is not None:
            named.append(self.post_processing.source)
        others = () if self.device is None else self.device.functions
        return tuple(dict.fromkeys((*named, *others)))

    def with_outputs(self, outputs: str | None) -> PairInterface:
        """Return this for a classifier whose outputs are known to be logits or probabilities."""
        if outputs is None or self.task != DEFAULT_TASK:
            return self
        return replace(
            self,
            task_settings={**self.task_settings, "outputs": outputs},
            device=None if self.device is None else self.device.with_outputs(outputs),
        )

    def described(self) -> InterfaceDescription:
        """Return what a run keeps of it; what is as it is by default is left out."""
        # Of other tasks it is a setting, and may be anything.
        outputs = self.task_settings.get("outputs") if self.task == DEFAULT_TASK else None
        as_usual = self.task == DEFAULT_TASK and not self.task_settings.keys() - {"outputs"}
        domain, searched = self.domain, self.searched[0]
        preprocess = None
        if self.domain_name == DEFAULT_DOMAIN and isinstance(domain, ImageDomain):
            preprocess = domain.preprocess.to_json()
        usual_inputs = (PairInput("", self.domain_name, searched.settings),)
        called = self.invocation
        return InterfaceDescription(
            outputs=outputs,
            task=None if as_usual else self.task,
            task_settings=None if as_usual else self.task_settings,
            preprocess=preprocess,
            domain=searched.domain,
            domain_settings=None if preprocess else searched.settings,
            inputs=None
            if self.inputs == usual_inputs
            else tuple(one.described() for one in self.inputs),
            invocation=None
            if called == Invocation()
            else InvocationDescription(
                signature=called.signature,
                shapes=called.shapes,
                state=called.state,
                frames=called.frames,
            ),
            device=None if self.device is None else self.device.described(),
        )

    @classmethod
    def of(cls, described: InterfaceDescription) -> PairInterface:
        """Return what `described` described.

        Raises:
            UserError: there is no such domain or task, or it does not take the settings.

        """
        images = described.domain == DEFAULT_DOMAIN
        settings = (described.preprocess if images else described.domain_settings) or {}
        usual = {} if described.outputs is None else {"outputs": described.outputs}
        task_settings = described.task_settings
        called = described.invocation
        return cls(
            inputs=tuple(PairInput(**structs.asdict(one)) for one in described.inputs)
            if described.inputs
            else (PairInput("", described.domain, settings),),
            task=described.task_name,
            task_settings=usual if task_settings is None else task_settings,
            invocation=Invocation() if called is None else Invocation(**structs.asdict(called)),
            device=None if described.device is None else cls.of(described.device),
        )


def front_end_function(settings: Mapping[str, Any]) -> str | None:
    """Return the Python function that an input's settings name as its front end, or None."""
    front_end = settings.get("front_end")
    name = front_end.get("name") if isinstance(front_end, Mapping) else None
    return name if isinstance(name, str) and is_callable(name) else None


def _require_alike(searched: tuple[PairInput, ...]) -> None:
    """Refuse inputs that cannot be searched together."""
    if not searched:
        raise UserError("search is false for every input: let the search change one")
    first = searched[0]
    for other in searched[1:]:
        if first.domain != "array" or other.domain != "array":
            raise UserError(
                f"inputs {first.name} ({first.domain}) and {other.name} ({other.domain}) cannot be"
                ' searched together, only those of the domain "array" can: say search = false'
                f" under [inputs.{other.name}]"
            )
        if first.opened_domain.space != other.opened_domain.space:
            raise UserError(
                f"inputs {first.name} and {other.name} are searched together, so they need the"
                " same dtype, lowest, highest and level: say so, or search = false under"
                f" [inputs.{other.name}]"
            )
