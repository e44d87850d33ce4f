"""The judge of repairs: the inputs that repaired models are judged on, and the counts there."""
