"""What is wrong with the answers to one model, and with whose."""
