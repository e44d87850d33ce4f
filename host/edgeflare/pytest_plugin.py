"""The pytest plugin: searches, surveys and checks as tests, by the fixture `edgeflare`.

Installed with edgeflare; `--edgeflare-device` says on what, `--edgeflare-out` where runs are kept.
pytest loads this file in every session, so it imports the rest where that is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from edgeflare.api.call_arguments import if_given, naming_arguments, real_number, whole_number
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.pytest_results import (
    SurveyArguments,
    SurveyResult,
    assert_decides_alike,
    assert_gates_hold,
    assert_may_ship,
    survey_in_test,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from edgeflare.api.check import CheckResult
    from edgeflare.api.search import SearchResult
    from edgeflare.devices.device import Device

__all__ = [
    "EdgeFlare",
    "SurveyResult",
    "assert_decides_alike",
    "assert_gates_hold",
    "assert_may_ship",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("edgeflare")
    group.addoption(
        "--edgeflare-device",
        action="append",
        metavar="NAME",
        help="device to search on, as for `edgeflare search --device`; may be repeated "
        "(default: emulated-builtin)",
    )
    group.addoption(
        "--edgeflare-out",
        type=Path,
        metavar="DIR",
        help="folder for the run directories, one for each test (default: a temporary one)",
    )
    group.addoption(
        "--edgeflare-trust",
        action="store_true",
        help="trust the profiles in ./device_profiles that --edgeflare-device names",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse devices that there are not: once, before any test."""
    if names := config.getoption("--edgeflare-device"):
        from edgeflare.devices.profile_lookup import find_profiles  # noqa: PLC0415
        from edgeflare.trust import granted  # noqa: PLC0415

        try:
            find_profiles(names, granted(True))  # read only: whoever opens them needs the trust
        except UserError as error:
            raise pytest.UsageError(str(error)) from None


class EdgeFlare:
    """What the fixture `edgeflare` gives: this session's devices, and searches on them."""

    def __init__(self, devices: list[str], folder: Path, *, trust: bool = False) -> None:
        """Take the devices' names, whether their profiles are trusted, and a folder for runs."""
        self.devices = devices
        self._trust = trust
        self._folder = folder
        self._runs = 0

    def search(
        self,
        pair: str | Path,
        *,
        total_queries: int = 10_000,
        time_limit: float | None = None,
        limit: int | None = None,
        first: int | None = None,
        find: Literal["any", "compression", "kernel"] = "any",
        strategy: str | None = None,
        min_strength: float = 0.0,
        within: float | Literal["default"] | None = "default",
        shrink: int | None = None,
        rng_seed: int = 0,
        operators: Sequence[str] = ("built-in",),
        trust: bool = False,
    ) -> SearchResult:
        """Search a pair within a budget; see the options of `edgeflare search`.

        Args:
            pair: a pair folder.
            total_queries: queries for all seeds together.
            time_limit: seconds that the search may take; None for no bound.
            limit: take so many seeds only, of each label its share.
            first: take the first so many seeds only, whatever their labels.
            find: deviations that count.
            strategy: name of the search strategy; that of the pair's task for None.
            min_strength: deviations weaker than this do not count, once they are strengthened.
            within: deviations farther from their seed than this PSNR in dB (of sounds SNR) do not
                count, once they are shrunk; None for any distance. By default 30 for images; each
                domain has its own.
            shrink: queries that bringing one finding nearer to its seed may take, beside those of
                the search; None for the default of `edgeflare search`, 0 for none.
            rng_seed: the run seed: the same one finds the same.
            operators: names of the mutation operators to draw from, as for `--operators`.
            trust: trust a Python function that the pair names as its original, and profiles in
                `./device_profiles`.

        Raises:
            UserError: an argument, the pair or a device's name is not what it should be, or needs
                the user's trust and does not have it.
            InfrastructureError: a device fails.

        """
        __tracebackhide__ = True
        from edgeflare.api.search import search  # noqa: PLC0415
        from edgeflare.run.plan import SHRINK  # noqa: PLC0415

        try:
            return search(
                pair,
                device=self.devices,
                total_queries=total_queries,
                time_limit=time_limit,
                limit=limit,
                first=first,
                find=find,
                strategy=strategy,
                min_strength=min_strength,
                within=within,
                shrink=SHRINK if shrink is None else shrink,
                rng_seed=rng_seed,
                operators=operators,
                out=self._next_folder(),
                overwrite=True,
                trust=trust,
                trust_profiles=self._trust,
                progress=False,
            )
        except EdgeFlareError as error:
            raise error.with_traceback(None) from None  # its one line says all

    @naming_arguments
    def survey(
        self,
        pair: str | Path,
        *,
        inputs: str | Path | None = None,
        conditions: str | Sequence[str] | None = None,
        severities: str | int | Sequence[int] = "1-5",
        groups: str | None = None,
        precision: float | None = None,
        device_queries: int | None = None,
        time_limit: float | None = None,
        confidence: float = 0.95,
        gates: str | Sequence[str] = (),
        findings: int = 0,
        limit: int | None = None,
        first: int | None = None,
        baseline: str | Path | None = None,
        rare: bool = False,
        rare_queries: int | None = None,
        ensemble: str | None = None,
        rng_seed: int = 0,
        trust: bool = False,
    ) -> SurveyResult:
        """Estimate how often a pair deviates in the field; see the options of `edgeflare survey`.

        Args:
            pair: a pair folder.
            inputs: an `.npz` or a folder, given as seeds are; the pair's seeds for None.
            conditions: names of sets and conditions, such as "noise,fog" or ["noise", "fog"], a
                TOML file, or "none"; for None the set "common" of the pair's domain.
            severities: such as "1-5", 3 or [1, 3, 5].
            groups: the column that says the group of each input.
            precision: half the width of the over-all interval at which the survey ends; for None
                0.005, unless a budget, a time limit or gates end it.
            device_queries: device queries at most; None for no bound.
            time_limit: seconds that asking the device may take; None for no bound.
            confidence: confidence of all intervals and gates.
            gates: what has to hold, such as "rate<0.01"; see `assert_gates_hold`.
            findings: deviating inputs that are stored and verified at most.
            limit: take so many inputs only, of each label its share.
            first: take the first so many inputs only, whatever their labels.
            baseline: the run directory of an earlier survey of the same inputs and conditions, to
                say what has changed since; None for none.
            rare: estimate then how often deviations are that are too rare to be seen.
            rare_queries: device queries that this may take, about; 2000 for None.
            ensemble: kernel sets of the host, the twin's own first, such as "xnnpack,builtin"; the
                device is asked more often where they disagree. None for the twin alone.
            rng_seed: the run seed: the same one says the same.
            trust: trust a Python function that the pair names as its original, and profiles in
                `./device_profiles`.

        Raises:
            UserError: an argument, the pair or a device's name is not what it should be, or needs
                the user's trust and does not have it.
            InfrastructureError: a device fails.

        """
        __tracebackhide__ = True
        rare_queries = if_given(whole_number, "rare_queries", rare_queries, 100)
        if rare_queries is not None and not rare:
            raise UserError(f"rare_queries={rare_queries}: is of rare events; add rare=True")
        asked = SurveyArguments(
            Path(pair),
            self.devices,
            inputs=None if inputs is None else Path(inputs),
            conditions=conditions,
            severities=severities,
            groups=groups,
            precision=if_given(real_number, "precision", precision, 1e-6, 0.5),
            device_queries=if_given(whole_number, "device_queries", device_queries, 1),
            time_limit_seconds=if_given(real_number, "time_limit", time_limit, 1e-3),
            confidence=real_number("confidence", confidence, 0.5, 0.9999),
            gates=gates,
            findings=whole_number("findings", findings, 0),
            limit=if_given(whole_number, "limit", limit, 1),
            first=if_given(whole_number, "first", first, 1),
            baseline=None if baseline is None else Path(baseline),
            rare=rare,
            rare_queries=rare_queries,
            ensemble=ensemble,
            rng_seed=whole_number("rng_seed", rng_seed, 0),
            trust=trust,
            trust_profiles=self._trust,
        )
        try:
            return survey_in_test(asked, self._next_folder())
        except EdgeFlareError as error:
            raise error.with_traceback(None) from None

    def check(
        self,
        pair: str | Path,
        *,
        inputs: str | Path | None = None,
        limit: int | None = None,
        gates: Sequence[str] = (),
        gates_file: str | Path | None = None,
        strict: bool = False,
        time_limit: float = 300.0,
        trust: bool = False,
    ) -> CheckResult:
        """Say whether the compressed model of a pair may ship; see `edgeflare check`.

        Args:
            pair: a pair folder.
            inputs: an `.npz` or a folder, given as seeds are; the pair's seeds for None.
            limit: take so many inputs only, of each label its share.
            gates: other limits than those of the pair, such as "accuracy-drop<0.02".
            gates_file: a .toml file with a table [gates], such as one of your team.
            strict: let nothing ship before each gate is decided by its interval.
            time_limit: seconds that it may take.
            trust: trust a Python function that the pair names as its original, and profiles in
                `./device_profiles`.

        Raises:
            UserError: an argument, the pair or a device's name is not what it should be, or needs
                the user's trust and does not have it.
            InfrastructureError: a device fails.

        """
        __tracebackhide__ = True
        from edgeflare.api.check import check  # noqa: PLC0415

        try:
            return check(
                pair,
                inputs=inputs,
                device=self.devices,
                limit=limit,
                gates=gates,
                gates_file=gates_file,
                strict=strict,
                time_limit=time_limit,
                near=False,
                out=self._next_folder(),
                overwrite=True,
                trust=trust,
                trust_profiles=self._trust,
                progress=False,
            )
        except EdgeFlareError as error:
            raise error.with_traceback(None) from None

    def _next_folder(self) -> Path:
        """Return the run directory of the next run of this test."""
        self._runs += 1
        return self._folder if self._runs == 1 else Path(f"{self._folder}-{self._runs}")

    def open_device(
        self, name: str | None = None, *, trust: bool = False
    ) -> AbstractContextManager[Device]:
        """Open a device, as for `with edgeflare.open_device() as device`; it is closed in the end.

        `device.provenance` says what it is, `device.open(path)` runs a `.tflite` file on it.

        Args:
            name: as for `--edgeflare-device`; the first of this session's devices for None.
            trust: trust its profile in `./device_profiles`.

        Raises:
            UserError: there is no such device, or it needs the user's trust.
            InfrastructureError: the device does not come up.

        """
        __tracebackhide__ = True
        from edgeflare.devices.device import connect  # noqa: PLC0415
        from edgeflare.devices.profile_lookup import find_profile  # noqa: PLC0415
        from edgeflare.trust import granted  # noqa: PLC0415

        trusted = trust or (self._trust and name in (None, *self.devices))
        try:
            return connect(find_profile(name or self.devices[0], granted(trusted)))
        except EdgeFlareError as error:
            raise error.with_traceback(None) from None


@pytest.fixture
def edgeflare(request: pytest.FixtureRequest, tmp_path: Path) -> EdgeFlare:
    """Return what searches on the devices of `--edgeflare-device`."""
    devices = request.config.getoption("--edgeflare-device") or ["emulated-builtin"]
    folder = request.config.getoption("--edgeflare-out")
    trust = request.config.getoption("--edgeflare-trust")
    return EdgeFlare(devices, (folder or tmp_path) / _file_name(request.node.nodeid), trust=trust)


def _file_name(test: str) -> str:
    """Return a name for a test's folder, which no other test of the session has."""
    readable = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in test)
    return f"{readable[-100:].lstrip('-.')}-{sha256(test.encode()).hexdigest()[:8]}"
