"""What an archive may hold: one object for each kind of content, entered by name in `registry.py`."""
