"""How often a compressed model deviates on its device under natural conditions."""
