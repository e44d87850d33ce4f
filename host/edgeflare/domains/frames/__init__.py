"""The domain of clips: frames of images."""
