"""Segmentation: a class for each pixel, and when the masks of two models deviate."""
