"""Gates of a survey: limits that a rate has to stay below for a release."""
