"""Graphs of operators that are written for a device to run."""
