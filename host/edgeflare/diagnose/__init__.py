"""Why a finding deviates, and where in the network it begins.

The rooms within: `inspect` looks at hidden channels over many inputs, `layers` at all layers.
"""
