"""Search strategies: each asks for evaluations and is told their outcomes."""
