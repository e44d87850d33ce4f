"""A conformance run as a page."""
