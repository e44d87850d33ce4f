"""The cluster that carries a fleet: Ray, with a token always."""
