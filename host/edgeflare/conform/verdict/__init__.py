"""What is wrong with the answers to one model, and with whose.

What kernels make of NaN, infinities, denormals and empty tensors is laid down nowhere, so that is
judged apart. D_MAD, the measure of MEMO's published code, is not used: it compares means of
magnitudes, blind to signs and order. Here a value is wrong by its own bound, and a mean by its own.
A fixed tolerance against another kernel would have to be a step or more, and truncation is not
seen then.
"""
