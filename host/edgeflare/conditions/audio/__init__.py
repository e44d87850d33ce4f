"""Conditions of sounds: mono waves of 16-bit PCM, (samples,), int16, whose length they keep.

A wave does not say its sample rate. Times are those at `SAMPLE_RATE` of the operators on sounds,
and twice as long at half of it; frequencies are shares of the Nyquist frequency, which is half the
sample rate.
"""
