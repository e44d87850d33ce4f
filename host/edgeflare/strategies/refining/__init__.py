"""What makes a triggering input stronger and smaller."""
