"""What an accelerator logs while it compiles a model: nothing else tells of driver and nodes."""

from __future__ import annotations

import re

from edgeflare_agent.runtime.recorded_stderr import RecordedStderr

_ADAPTER = re.compile(r"Selected adapter: (.+)")
_COUNTS = re.compile(r"(\d+) operations will run on the GPU, and the remaining (\d+) operations")
_NONE = re.compile(r"No operations will run on the GPU, and all (\d+) operations")
_UNSUPPORTED = re.compile(r"operations are not supported by GPU delegate:\n((?:\w+: .*\n)+)")
_LACKING = re.compile(r"Warning: (Vulkan .* required)\.")
_INVALID = re.compile(r"Validation error: (?:Error while parsing WGSL: :\d+:\d+ error: )?(.+)")

_NO_NPU = "No compiler plugin found"

_NO_DRIVER = (
    "finds no driver that it can use{lacking}: install the Vulkan driver of the device, or for a"
    " GPU in software on Debian: apt-get install libvulkan1 chromium"
)


class AcceleratorLog:
    """What was recorded while a model was compiled, read.

    Attributes:
        adapter: what the accelerator computes on, as its driver says; empty if that is not logged.
        accelerated: nodes that it took of a model that it took in part.
        absent: whether there is no such accelerator.

    """

    def __init__(self, recorded: RecordedStderr) -> None:
        self._recorded = recorded

    @property
    def adapter(self) -> str:
        """See the class."""
        found = _ADAPTER.search(self._recorded.text)
        return found.group(1).strip() if found else ""

    @property
    def accelerated(self) -> int:
        """See the class."""
        return self._counts()[0]

    def _counts(self) -> tuple[int, int]:
        """Return how many nodes the accelerator takes, and of how many; 0 if that is not logged."""
        text = self._recorded.text
        if found := _COUNTS.search(text):
            taken, left = map(int, found.groups())
            return taken, taken + left
        found = _NONE.search(text)
        return 0, int(found.group(1)) if found else 0

    @property
    def invalid(self) -> str:
        """What the driver finds invalid of what the accelerator prepared; empty for nothing."""
        found = _INVALID.search(self._recorded.text)
        return found.group(1).strip() if found else ""

    @property
    def absent(self) -> bool:
        """See the class."""
        return _NO_NPU in self._recorded.text

    def refusal(self, message: str) -> str:
        """Return why a model was refused, as what follows the accelerator's name."""
        text = self._recorded.text
        if "No adapters found" in text:
            lacking = _LACKING.search(text)
            return _NO_DRIVER.format(lacking=f" ({lacking.group(1)})" if lacking else "")
        if self.absent:
            return (
                "finds no NPU: install its vendor's compiler plugin and dispatch library for LiteRT"
            )
        if "dynamic-sized tensors" in text:
            return (
                "takes no model with tensors that are sized while it runs, as by SHAPE before"
                " RESHAPE: add --fold-shapes where their sizes never change, or convert it with a"
                " fixed batch size"
            )
        if found := _UNSUPPORTED.search(text):
            operators = "; ".join(found.group(1).split("\n")[:-1])
            taken, total = self._counts()
            return (
                f"takes {taken} of {total} nodes, and not {operators.strip(' .')}: set"
                " fallback = true in the device's profile to run the others on the CPU"
            )
        last = message.strip().split("└")[-1]
        return f"refuses it: {' '.join(last.split()) or 'no reason given'}"
