"""What every room speaks of: arms, answers, outcomes, queries, triggers, goals and bounds."""
