"""What a command writes down in a folder, and reads again: safe in hostile and unlucky hands.

What holds a folder raises UserError where another process works in it. What reads or writes a
database or a folder raises InfrastructureError where the disk or its permissions do not allow it,
and DamagedDatabaseError where the database is none; the docstrings within leave that out.
"""
