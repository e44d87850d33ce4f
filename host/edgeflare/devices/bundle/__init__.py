"""The bundle: the agent with a Python, a runtime and a loader of its own, in one file to push."""
