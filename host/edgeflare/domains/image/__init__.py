"""The domain of images."""
