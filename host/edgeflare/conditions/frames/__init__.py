"""Conditions of clips, (frames, H, W, C), uint8: what happens to frames in the course of time."""
