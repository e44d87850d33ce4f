"""Conditions of images: the common corruptions of ImageNet-C, and what cameras do.

The corruptions are written here with numpy and OpenCV, and held to the published code by recorded
outputs: `imagecorruptions` does not run on NumPy 2 and would bring scikit-image, and its pictures
of frost have no known licence.
"""
