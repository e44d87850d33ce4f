"""Choosing among compressed models of one original, by how hard it is to make them deviate."""
