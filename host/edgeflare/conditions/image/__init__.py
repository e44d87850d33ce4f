"""Conditions of images: the common corruptions of ImageNet-C, and what cameras do."""
