"""Hidden units scored against hypotheses: which channels foretell that an input deviates."""
