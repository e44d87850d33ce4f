"""Models that can be the original or the twin, with their encoders and decoders.

Whatever opens a model raises UserError where its file cannot be read or is no model file,
InfrastructureError where no worker process can be started, and OperatorMissing where the host's
runtime lacks one of its operators; the docstrings within leave that out.
"""
