"""The tables of a journal."""

from __future__ import annotations

from typing import Final

TABLES: Final = """
-- What the arms answered. role: 'seed' (n = 0), 'step' (n = the query's number in its
-- chain, from 1), 'refine' (the same in a refinement), 'verify' (n = the repetition, from 0),
-- 'canary' (n = its number, from 1, negative where it was asked again) or 'test' (n = 0; seed_id
-- is the held-out input's position).
CREATE TABLE answers (
    role TEXT NOT NULL, seed_id INTEGER NOT NULL, n INTEGER NOT NULL,
    image_crc32 INTEGER NOT NULL,
    original BLOB, twin BLOB, device BLOB,
    members BLOB,  -- the twin's ensemble, one output behind the other
    failures TEXT,
    seconds REAL NOT NULL,
    PRIMARY KEY (role, seed_id, n)
) WITHOUT ROWID;

-- Chains that have ended.
CREATE TABLE chains (
    seed_id INTEGER PRIMARY KEY, ended TEXT NOT NULL,
    queries INTEGER NOT NULL, device_queries INTEGER NOT NULL,
    original_evaluations INTEGER NOT NULL, twin_evaluations INTEGER NOT NULL,
    member_evaluations INTEGER NOT NULL,
    ties INTEGER NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID;

-- Triggering inputs: of chains, and seeds that deviate themselves.
CREATE TABLE triggers (
    seed_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, operators TEXT NOT NULL,
    image TEXT NOT NULL, sha256 TEXT NOT NULL, seed_image TEXT NOT NULL,
    l2 REAL NOT NULL, linf REAL NOT NULL, mean_abs REAL NOT NULL, changed INTEGER NOT NULL
) WITHOUT ROWID;

-- Findings that were refined: what that cost, and what they were before.
CREATE TABLE refinements (
    seed_id INTEGER PRIMARY KEY,
    queries INTEGER NOT NULL, device_queries INTEGER NOT NULL,
    original_evaluations INTEGER NOT NULL, twin_evaluations INTEGER NOT NULL,
    member_evaluations INTEGER NOT NULL,
    strength REAL, image TEXT NOT NULL,
    l2 REAL NOT NULL, linf REAL NOT NULL, mean_abs REAL NOT NULL, changed INTEGER NOT NULL
) WITHOUT ROWID;

-- The times of each process that worked on the run.
CREATE TABLE stints (
    id INTEGER PRIMARY KEY,
    setup_seconds REAL NOT NULL DEFAULT 0, wall_seconds REAL NOT NULL DEFAULT 0,
    refine_seconds REAL NOT NULL DEFAULT 0,
    verify_seconds REAL NOT NULL DEFAULT 0, device_busy_seconds REAL NOT NULL DEFAULT 0
);
"""

NEARNESS_TABLE: Final = """
CREATE TABLE IF NOT EXISTS nearness (image TEXT PRIMARY KEY, db REAL NOT NULL) WITHOUT ROWID
"""
"""How near to its seed a stored input is, by its path. Made with the first, so that a run of a
version without it can be resumed."""

WHITE_BOX_TABLE: Final = """
CREATE TABLE IF NOT EXISTS white_box (
    seed_id INTEGER PRIMARY KEY,
    host_gradients INTEGER NOT NULL, translated_evaluations INTEGER NOT NULL
) WITHOUT ROWID
"""
"""The white-box queries of chains that have ended. Made with the first, for the same reason."""

REFINEMENT_STEPS_TABLE: Final = """
CREATE TABLE IF NOT EXISTS refinement_steps (
    seed_id INTEGER PRIMARY KEY,
    strengthen_queries INTEGER NOT NULL, strengthen_device_queries INTEGER NOT NULL,
    seconds REAL NOT NULL, strengthen_seconds REAL NOT NULL
) WITHOUT ROWID
"""
"""What strengthening had of a refinement that has ended. Made with the first, for the same
reason."""

MARKS_TABLE: Final = """
CREATE TABLE IF NOT EXISTS marks (
    what TEXT NOT NULL, seed_id INTEGER NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (what, seed_id)
) WITHOUT ROWID
"""
"""How far answers are known to be reliable; see `reliable_answers`."""
