"""What modules join to paths that is no constant, and why nobody else chooses where it leads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BY_THE_USER: Final = "the user's own option or file, which may name any place"
OF_A_PATH: Final = "the name of a file that is there, or was just named"
OF_OURS: Final = "one of a fixed set of names of ours"
CHECKED: Final = "held to a pattern or quoted right there"
NUMBER: Final = "no path, but a division"
MODEL: Final = (
    "a model of the pair, which the user names, or a run and `PastRun` holds to a model file"
)
SHOWN: Final = "only shown, and never opened"
LISTED: Final = "held to the folder by `path_inside`, or the name of a file that is there"
STRATEGY: Final = "a strategy that is installed, and a number"
SYSTEM: Final = "the interpreter or the system says it"

KNOWN_JOINS: Final[Mapping[str, Mapping[str, str]]] = {
    "agent/edgeflare_agent/__main__.py": {
        "_Parser._print_message: os.devnull": SYSTEM,
        "_default_store: f'edgeflare-{os.getuid()}'": OF_OURS,
        "_default_store: tempfile.gettempdir()": SYSTEM,
    },
    "agent/edgeflare_agent/model_store.py": {
        "ModelStore._path: sha256 + _SUFFIX": CHECKED,
    },
    "agent/edgeflare_agent/runtime/compiled/compiled_runtime.py": {
        "CompiledRuntime.offers: _LIBRARIES['compiled-cpu']": OF_OURS,
        "CompiledRuntime.offers: found.origin": SYSTEM,
    },
    "agent/edgeflare_agent/runtime/worker.py": {
        "_open: order['model']": "the file that the server has just stored",
    },
    "host/edgeflare/bench/grid.py": {
        "BenchRun.run: f'{self.plan.strategy}-{self.plan.rng_seed}'": STRATEGY,
        "BenchRun.run: self.pair.folder_name": "the plain name of the pair's folder",
    },
    "host/edgeflare/campaign/captured_arm.py": {
        "CapturedArm.__init__: str(pair.original if arm is Arm.ORIGINAL else pair.executed)": MODEL,
    },
    "host/edgeflare/campaign/dry_run.py": {
        "_unread: pair.original": MODEL,
    },
    "host/edgeflare/campaign/non_finite_outputs.py": {
        "begins: str(path)": MODEL,
    },
    "host/edgeflare/cli/addition_on_fleet.py": {
        "AdditionOnFleet.is_put: made.name": OF_A_PATH,
        "AdditionOnFleet.is_put: self.added[0]": OF_OURS,
        "AdditionOnFleet.result: self.added[0]": OF_OURS,
        "add_on_fleet: added[0]": OF_OURS,
    },
    "host/edgeflare/cli/agent.py": {
        "_copy: path.name": OF_A_PATH,
    },
    "host/edgeflare/cli/command_on_fleet.py": {
        "CommandOnFleet.place: unit.name": "a class of devices, made a plain name",
        "place_of: f'{name}-{datetime.now():%Y%m%d-%H%M%S}'": BY_THE_USER,
        "place_of: one": "a class of devices, made a plain name",
    },
    "host/edgeflare/cli/export.py": {
        "_export_operator: f'finding-{number}.zip'": "a whole number",
    },
    "host/edgeflare/cli/kernel_set_matrix.py": {
        "compare_kernel_sets: one.kernels": OF_OURS,
        "run_kernel_sets.announced: profile.kernels": OF_OURS,
        "try_kernel_sets: profile.kernels": OF_OURS,
    },
    "host/edgeflare/cli/matrix_options.py": {
        "matrix_path: f'{name}-matrix-{datetime.now():%Y%m%d-%H%M%S}'": BY_THE_USER,
    },
    "host/edgeflare/cli/only_run.py": {
        "make_only_run: cell.run": STRATEGY,
    },
    "host/edgeflare/cli/overlay_files.py": {
        "OverlayFiles._folder: _FOLDER.format(seed_id)": "a whole number",
    },
    "host/edgeflare/cli/quiet.py": {
        "_silence: os.devnull": SYSTEM,
    },
    "host/edgeflare/cli/replay.py": {
        "replay: f'{name}-{datetime.now():%Y%m%d-%H%M%S}'": BY_THE_USER,
    },
    "host/edgeflare/cli/replayed_conformance.py": {
        "replay_conformance: name": BY_THE_USER,
    },
    "host/edgeflare/cli/run_options.py": {
        "RunFolder.choose: f'{name}-{datetime.now():%Y%m%d-%H%M%S}'": BY_THE_USER,
    },
    "host/edgeflare/cli/runs_on_fleet.py": {
        "RunsOnFleet._gathered: cell.run": STRATEGY,
    },
    "host/edgeflare/conditions/condition_choice.py": {
        "chosen_conditions: text.strip()": BY_THE_USER,
    },
    "host/edgeflare/conform/execution/pack_runner.py": {
        "PackRunner._attempt: self._folder.name": "a temporary folder of ours",
    },
    "host/edgeflare/conform/finding_archive.py": {
        "_script_of_runtime: f'on_{kernels}.py'": OF_OURS,
    },
    "host/edgeflare/conform/record/stored_model.py": {
        "stored_model: name": SHOWN,
    },
    "host/edgeflare/crash_report.py": {
        "keep_traceback: tempfile.gettempdir()": SYSTEM,
    },
    "host/edgeflare/devices/agent_lease.py": {
        "_command: sys.argv[0]": SYSTEM,
    },
    "host/edgeflare/devices/bundle/contents.py": {
        "_fetch_python: target.debian": OF_OURS,
    },
    "host/edgeflare/devices/bundle/debian.py": {
        "fetch_python: name": "a package that apt has just named",
    },
    "host/edgeflare/devices/bundle/tree.py": {
        "write_tree: path": "a file of those packages",
    },
    "host/edgeflare/devices/lease.py": {
        "lease: f\"{quote(device, safe='')}.lock\"": CHECKED,
    },
    "host/edgeflare/devices/npu_check.py": {
        "check_npu: found.origin": SYSTEM,
    },
    "host/edgeflare/devices/profile_keys.py": {
        "_read_path: os.path.expanduser(read_text(folder, value))": BY_THE_USER,
    },
    "host/edgeflare/devices/transports/child_agent.py": {
        "ChildAgent.start: self.folder / 'log'": "a temporary folder of ours",
    },
    "host/edgeflare/devices/transports/scratch.py": {
        "ScratchFolder.__init__: tempfile.mkdtemp(prefix=_PREFIX)": SYSTEM,
        "_sweep: tempfile.gettempdir()": SYSTEM,
    },
    "host/edgeflare/fleet/record/fleet_folder.py": {
        "FleetFolder._name_in: kept": OF_OURS,
        "FleetFolder._of_unit: kept": OF_OURS,
        "FleetFolder._of_unit: self._name_in(kept, f'{name}{end}')": CHECKED,
        "FleetFolder.beside: name": OF_OURS,
        "FleetFolder.beside: os.path.abspath(run)": BY_THE_USER,
        "FleetFolder.inner: name": OF_OURS,
    },
    "host/edgeflare/fleet/work/folder_archive.py": {
        "_files: one": OF_A_PATH,
        "archive_folder: str(at)": "a whole number",
    },
    "host/edgeflare/fleet/work/unit_attempt.py": {
        "_folder: order.campaign": "the sha256 of what the head asks for",
        "_folder: tempfile.mkdtemp(prefix=f'{order.unit}-{order.number}-', dir=campaign)": SYSTEM,
        "_run_in: f'given-{at}'": "a whole number",
    },
    "host/edgeflare/models/agent_code.py": {
        "package_folder: spec.origin": SYSTEM,
    },
    "host/edgeflare/models/model_probe.py": {
        "HostProbe.__init__: self._folder.name": "a temporary folder of ours",
    },
    "host/edgeflare/models/pair.py": {
        "Pair._original_files: self.original": MODEL,
    },
    "host/edgeflare/models/pair_file.py": {
        "_placed: Path(source).expanduser()": BY_THE_USER,
        "_with_anchors_read: Path(anchors).expanduser()": BY_THE_USER,
    },
    "host/edgeflare/models/temporary_model.py": {
        "temporary_model: f'{stem}.tflite'": OF_OURS,
    },
    "host/edgeflare/pytest_plugin.py": {
        "EdgeFlare._next_folder: f'{self._folder}-{self._runs}'": BY_THE_USER,
        "_message: worst.image": SHOWN,
        "edgeflare: _file_name(request.node.nodeid)": CHECKED,
    },
    "host/edgeflare/python_callable.py": {
        "callable_files: found.origin": SYSTEM,
    },
    "host/edgeflare/rank/rank_runs.py": {
        "search_all: cell.run": STRATEGY,
    },
    "host/edgeflare/rank/rank_sentences.py": {
        "_accuracy: right.images": NUMBER,
    },
    "host/edgeflare/record/database.py": {
        "_ahead: f'{path}-wal'": OF_A_PATH,
        "require_regular_files: f'{path}{beside}'": OF_A_PATH,
    },
    "host/edgeflare/record/atomic_file.py": {
        "_write_atomically: f'.{path.name}.{secrets.token_hex(4)}'": OF_A_PATH,
        "_write_atomically: unfinished.name": OF_A_PATH,
    },
    "host/edgeflare/record/folder.py": {
        "ClaimedFolder.require_unchanged: name": LISTED,
        "_files: name": LISTED,
        "_is_stage: at": OF_OURS,
        "_list_all: name": LISTED,
        "remove_documents: name": OF_OURS,
        "_require_folders: parent": LISTED,
        "_require_room: name": LISTED,
        "_roll_forward: name": LISTED,
        "mend: name": LISTED,
        "require_ours: name": LISTED,
    },
    "host/edgeflare/record/folder_contents.py": {
        "FolderContents.knows: inner": "held to the folder by `path_inside`",
        "unfinished_state: f'.{path.name}.new'": OF_A_PATH,
        "present.is_there: at": OF_A_PATH,
    },
    "host/edgeflare/record/path_inside.py": {
        "path_inside: name": "the function itself",
    },
    "host/edgeflare/repair/repair_cost.py": {
        "_cost: before": NUMBER,
    },
    "host/edgeflare/repair/repair_requirements.py": {
        "_has_float_file: pair.original": MODEL,
        "original_file: pair.original": MODEL,
    },
    "host/edgeflare/replay/past_run.py": {
        "PastRun.pair: str(self._recorded('compressed', '.tflite'))": MODEL,
    },
    "host/edgeflare/replay/replay_run.py": {
        "open_replay: past.lies_at": BY_THE_USER,
    },
    "host/edgeflare/replay/reproduction_archive.py": {
        "_original: pair.original": MODEL,
        "_reproduction: entry.image": "its end alone, of a file that was read",
        "_reproduction: entry.seed_image": "likewise",
        "_reproduction: str(pair.original)": MODEL,
        "_scripts: stored": OF_OURS,
    },
    "host/edgeflare/run/journal_database.py": {
        "_refuse_other_runs: name": OF_OURS,
        "check_journal_files: f'{path}-journal'": OF_A_PATH,
    },
    "host/edgeflare/run/merge/merge_groups.py": {
        "merge_in_groups: f'{len(paths)}-{begin}'": "whole numbers",
    },
    "host/edgeflare/run/merge/merged_rows.py": {
        "_of_file: row[0]": "its last part alone, made a number",
    },
    "host/edgeflare/run/run_directory.py": {
        "what_is_in: name": OF_OURS,
    },
    "host/edgeflare/suggestion.py": {
        "path_suggestion: *rest": BY_THE_USER,
    },
    "host/edgeflare/survey/shown/survey_tables.py": {
        "baseline_table: baseline['run']": SHOWN,
    },
    "host/edgeflare/survey/survey_run.py": {
        "_require_other_baseline: survey.baseline.name": BY_THE_USER,
    },
}
"""By the file, what is joined there after the name of the function, and the reason."""
