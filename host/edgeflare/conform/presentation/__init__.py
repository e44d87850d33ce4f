"""A conformance run, shown; nothing is run here."""
