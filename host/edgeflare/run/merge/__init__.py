"""One run made of several that searched parts of the same seeds, exactly, by the seeds' ids."""
