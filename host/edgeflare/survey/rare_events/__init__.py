"""Rates that are too small to see: multilevel splitting over conditions of continuous severity."""
