"""Detection: boxes, classes and scores, matched one to one between two models."""
