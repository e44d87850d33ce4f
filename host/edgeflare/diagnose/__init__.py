"""Why a finding deviates, and where in the network it begins.

The room within: `inspect` looks at hidden channels over many inputs.
"""
