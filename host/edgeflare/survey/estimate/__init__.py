"""Rates of all items, from the few that a device was asked about: drawing, intervals, tests."""
