"""The engine: many chains at once, batches in flight, budgets, journal, verification, resume."""
