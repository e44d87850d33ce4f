"""What the models of a pair take and give: inputs, task, and how they are called on one input.

It is read from what `pair.toml` and options say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from edgeflare.core.domain import Domain
from edgeflare.core.task import Task
from edgeflare.domains.domain_registry import find_domain
from edgeflare.domains.frames_domain import FramesDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.domains.image.preprocess import PRESETS, Preprocess, preset
from edgeflare.errors import UserError
from edgeflare.models.evaluator import Invocation
from edgeflare.models.pair_file import Settings
from edgeflare.models.post_processing import PostProcessing
from edgeflare.models.run_pair import (
    DEFAULT_DOMAIN,
    DEFAULT_TASK,
    InputDescription,
    InterfaceDescription,
    InvocationDescription,
)
from edgeflare.python_callable import is_callable
from edgeflare.record.json_types import JsonValue
from edgeflare.tasks.task_registry import find_task


@dataclass(frozen=True, slots=True)
class PairInput:
    """One input of a pair's models.

    Attributes:
        name: as the pair calls it; empty where the models have one only, without a table of its
            own.
        domain: name of its domain.
        settings: what the domain is constructed with, as plain JSON values.
        tensor: what the models call it; empty where that is its name, or it is found by its shape.
        array: the name of its array in an `.npz` of seeds; empty where that is its name, or that of
            its domain's arrays.
        search: whether the search may change it.
        opened_domain: the domain itself.

    """

    name: str
    domain: str = DEFAULT_DOMAIN
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    tensor: str = ""
    array: str = ""
    search: bool = True
    opened_domain: Domain = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Construct the domain.

        Raises:
            UserError: there is none of the name, or it does not take the settings.

        """
        where = f"[inputs.{self.name}]" if self.name else f"domain {self.domain}"
        object.__setattr__(self, "opened_domain", find_domain(self.domain, self.settings, where))

    @property
    def tensor_name(self) -> str:
        """What the models call it, if they call it as the pair says."""
        return self.tensor or self.name

    def described(self) -> InputDescription:
        """Return what a run keeps of it."""
        return InputDescription(
            name=self.name,
            domain=self.domain,
            settings=self.settings,
            tensor=self.tensor,
            array=self.array,
            search=self.search,
        )


@dataclass(frozen=True, slots=True)
class PairInterface:
    """What the models of a pair take and give.

    Attributes:
        inputs: inputs of the models; the search changes one of them at least.
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
    task_settings: Mapping[str, JsonValue] = field(default_factory=dict)
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
        return tuple(input_ for input_ in self.inputs if input_.search)

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
        front_ends = (front_end_function(input_.settings) for input_ in self.inputs)
        named = [front_end for front_end in front_ends if front_end is not None]
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
        said = self.task_settings.get("outputs")
        outputs = said if self.task == DEFAULT_TASK and isinstance(said, str) else None
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
            else tuple(input_.described() for input_ in self.inputs),
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
            inputs=tuple(PairInput(**structs.asdict(input_)) for input_ in described.inputs)
            if described.inputs
            else (PairInput("", described.domain, settings),),
            task=described.task_name,
            task_settings=usual if task_settings is None else task_settings,
            invocation=Invocation() if called is None else Invocation(**structs.asdict(called)),
            device=None if described.device is None else cls.of(described.device),
        )


def front_end_function(settings: Mapping[str, JsonValue]) -> str | None:
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


def read_interface(said: Settings, *, from_file: bool) -> PairInterface:
    """Return what the models of a pair take and give.

    Args:
        said: what `pair.toml` and options say.
        from_file: a `pair.toml` is among them, which has to say how images are preprocessed.

    Raises:
        UserError: a domain or task does not take what is said of it, or something is missing; or
            `[device]` says another task, or inputs that are others than the search changes.

    """
    here = _without_device(said, from_file=from_file)
    if said.device is None:
        return here
    merged = _as_on_device(said, said.device)
    try:
        return replace(here, device=_without_device(merged, from_file=from_file))
    except UserError as error:
        raise UserError(f"with what [device] says: {error}") from error


def _as_on_device(said: Settings, device: Settings) -> Settings:
    """Return the settings of a pair with what `[device]` says in their place."""
    task = {"name": DEFAULT_TASK, **(said.task or {})}
    own = device.task or {}
    if own.get("name", task["name"]) != task["name"]:
        raise UserError(
            f"[device.task] says name = {own['name']!r}, but the task is {task['name']!r}: say"
            " other keys of that task"
        )
    inputs, theirs = said.inputs or {}, device.inputs or {}
    for name, table in theirs.items():
        if name not in inputs:
            known = ", ".join(inputs) or "none, and [device.preprocess] is what images have"
            raise UserError(f"[device.inputs.{name}]: there is no input {name}; inputs are {known}")
        for key in _NOT_OF_THE_DEVICE & table.keys():
            raise UserError(
                f"[device.inputs.{name}]: {key} is what all arms have in common: remove it, and say"
                " other keys of the domain, such as front_end"
            )
    return replace(
        device.over(said),
        task=merged_tables(task, own),
        inputs={
            name: merged_tables(input_, theirs.get(name, {})) for name, input_ in inputs.items()
        }
        or None,
    )


_NOT_OF_THE_DEVICE = {"domain", "tensor", "array", "search"}


def merged_tables(
    base: Mapping[str, JsonValue], changes: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return a table with other values of single keys, also in the tables that it holds.

    A table that says another `name` replaces the one of `base` as a whole: its keys are those of
    something else.
    """
    merged = dict(base)
    for key, value in changes.items():
        before = base.get(key)
        merged[key] = value
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            named = before.get("name")
            if value.get("name", named) == named:
                merged[key] = merged_tables(before, value)
    return merged


def _without_device(said: Settings, *, from_file: bool) -> PairInterface:
    settings = dict(said.task or {})
    task = str(settings.pop("name", DEFAULT_TASK))
    if said.outputs not in (None, "auto"):
        settings["outputs"] = said.outputs
    inputs = _only_input(said, from_file) if said.inputs is None else _inputs(said, said.inputs)
    frames = said.frames or _window_count(inputs)
    invocation = Invocation(said.signature or "", said.shapes or {}, said.state or {}, frames)
    if invocation.state and not invocation.frames:
        raise UserError(
            "a model with a state is run frame by frame: say frames = the steps of one clip beside"
            " [state]"
        )
    if not invocation.frames and any(isinstance(i.opened_domain, FramesDomain) for i in inputs):
        raise UserError(
            "clips are given to a model frame by frame: write above the tables frames = the frames"
            " of one clip"
        )
    tables = (said.inputs or {}).items()
    for name in invocation.state:
        if any(name in (own, table.get("tensor")) for own, table in tables):
            raise UserError(
                f"[state] feeds the input {name}, which [inputs] describes too: remove its table"
            )
    return PairInterface(inputs, task, settings, invocation)


def _window_count(inputs: Sequence[PairInput]) -> int:
    """Return how many windows an input has, which are the frames of a clip; 0 where it has none."""
    for input_ in inputs:
        if "windows" in input_.settings:
            if count := input_.opened_domain.window_count():
                return count
            raise UserError(
                f"[inputs.{input_.name}]: windows of an input are inferences one after the other:"
                " write above the tables frames = N, where N = 1 + (rows of an input - length)"
                " / step"
            )
    return 0


def _only_input(said: Settings, from_file: bool) -> tuple[PairInput, ...]:
    domain = said.domain or DEFAULT_DOMAIN
    if domain == DEFAULT_DOMAIN:
        return (PairInput("", domain, _preprocess(said, from_file).to_json()),)
    _refuse_preprocessing(said, f"the domain is {domain!r}")
    return (PairInput("", domain),)


def _inputs(said: Settings, tables: Mapping[str, Mapping[str, JsonValue]]) -> tuple[PairInput, ...]:
    if said.domain is not None:
        raise UserError("domain is given beside [inputs]: write it under each [inputs.NAME]")
    _refuse_preprocessing(said, "[inputs] says what each input is")
    return tuple(_input(name, dict(table)) for name, table in tables.items())


def _input(name: str, table: dict[str, JsonValue]) -> PairInput:
    own = {}
    for key, default in (("domain", DEFAULT_DOMAIN), ("tensor", ""), ("array", "")):
        value = table.pop(key, default)
        if not isinstance(value, str):
            raise UserError(f"[inputs.{name}]: {key} is {value!r}; expected a name")
        own[key] = value
    search = table.pop("search", True)
    if not isinstance(search, bool):
        raise UserError(f"[inputs.{name}]: search is {search!r}; expected true or false")
    return PairInput(name, own["domain"], table, own["tensor"], own["array"], search)


def _refuse_preprocessing(said: Settings, why: str) -> None:
    for key in ("preset", "scale", "mean", "std", "resize", "channels", "layout", "rounding"):
        if getattr(said, key) is not None:
            raise UserError(
                f"{key} is preprocessing of images at the top level, but {why}: write it under"
                " [inputs.NAME] of an image"
            )


def _preprocess(said: Settings, from_file: bool) -> Preprocess:
    explicit = {key: getattr(said, key) for key in ("scale", "mean", "std")}
    absent = [key for key, value in explicit.items() if value is None]
    if from_file and said.preset is None and absent:
        raise UserError(
            f"[preprocess] says nothing of {', '.join(absent)}: give scale, mean and std "
            "in model input = (pixel / scale - mean) / std, or a preset: " + ", ".join(PRESETS)
        )
    changes = {key: value for key, value in explicit.items() if value is not None}
    for key in ("mean", "std"):
        if key in changes:
            changes[key] = tuple(changes[key])
    for key in ("resize", "channels", "layout", "rounding"):
        if getattr(said, key) is not None:
            changes[key] = getattr(said, key)
    return replace(preset(said.preset or "unit"), **changes)
