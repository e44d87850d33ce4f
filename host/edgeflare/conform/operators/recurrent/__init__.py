"""Operators that go over a sequence step by step, with a state: RNN and LSTM."""
