"""Intervals and tests: functions of numbers, which know nothing of runs, models or devices."""
