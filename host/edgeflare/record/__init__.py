"""What a command writes down in a folder, and reads again: safe in hostile and unlucky hands."""
