"""The phases of a check: what each measures, and how far a check has come."""
