"""The domain of sounds: waves, their files, and the front ends that make features of them."""
