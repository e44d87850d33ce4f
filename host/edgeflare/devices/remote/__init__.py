"""Agents on devices that are reached through a shell: deployed by hash, started, found again."""
