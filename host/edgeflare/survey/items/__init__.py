"""The items of a survey: inputs under conditions, what is known of each, and what was asked."""
