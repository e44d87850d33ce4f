"""Operators on sounds: mono waves of 16-bit PCM, (samples,), int16, whose length they keep.

A wave does not say its sample rate. Times and frequencies are those at `SAMPLE_RATE`; at half of
it, times are twice as long and frequencies half as high: the same share of the spectrum.
"""

from edgeflare_operators.audio.audio_library import SAMPLE_RATE, audio_library
from edgeflare_operators.audio.colored_noise import brown_noise, pink_noise, white_noise
from edgeflare_operators.audio.pass_filters import band_pass, high_pass, low_pass
from edgeflare_operators.audio.reverberation import reverberation
from edgeflare_operators.audio.time_and_pitch import pitch_shift, time_shift, time_stretch
from edgeflare_operators.audio.volume import clipping, gain

__all__ = [
    "SAMPLE_RATE",
    "audio_library",
    "band_pass",
    "brown_noise",
    "clipping",
    "gain",
    "high_pass",
    "low_pass",
    "pink_noise",
    "pitch_shift",
    "reverberation",
    "time_shift",
    "time_stretch",
    "white_noise",
]
