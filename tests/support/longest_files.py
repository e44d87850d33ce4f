"""The files of tests that take longest."""

from __future__ import annotations

LONGEST_FILES = (
    "docs/test_commands.py",
    "devices/transports/test_adb.py",
    "cli/test_repair.py",
    "cli/test_explain.py",
    "cli/test_inspect.py",
    "devices/transports/test_qemu.py",
    "cli/test_other_domains.py",
    "cli/test_rank.py",
    "devices/bundle/test_build_bundle.py",
    "devices/transports/test_ssh.py",
    "cli/test_crafted_runs.py",
    "cli/test_repair_by_shifts.py",
    "cli/test_pairs_with_state.py",
    "pytest_plugin/test_pytest_plugin.py",
    "campaign/test_kills.py",
    "campaign/test_white_box_resume.py",
    "cli/test_white_box_bad_input.py",
    "devices/test_network_faults.py",
    "diagnose/inspect/test_inspect_pair.py",
    "diagnose/test_explain.py",
    "diagnose/test_planted_faults.py",
    "diagnose/test_runtime_faults.py",
    "diagnose/test_localization.py",
    "report/html/test_structured_pages.py",
    "cli/test_replay.py",
    "cli/test_transcripts.py",
    "cli/test_export.py",
    "cli/test_survey.py",
    "cli/test_conform.py",
    "cli/test_overlay_files.py",
    "agent/test_idle.py",
    "agent/test_fuzz.py",
)
"""What workers begin with: where short files come last, all workers end together."""
