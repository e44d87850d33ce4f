"""MEMO, the published way to draw models, which even drawing is compared with."""
