"""What a survey keeps in its run directory."""
