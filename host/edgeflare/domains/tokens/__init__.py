"""The domain of tokens: ids of a vocabulary."""
