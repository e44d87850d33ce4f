"""Why a finding deviates, and where in the network it begins.

The rooms within: `inspect` looks at hidden channels over many inputs, `layers` at all layers.

Whatever runs a model raises InfrastructureError where a worker process cannot be started, or it or
a device is lost for good; the docstrings within leave that out. They leave out UserError as well,
where a document is damaged or of another schema, a Python function of the pair raises an exception,
or scikit-learn is not installed, which `inspect` needs.
"""
