"""The repair that moves boundaries behind a model: a shift for each two classes, from a run."""
