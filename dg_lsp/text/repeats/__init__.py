"""Repeats: the other places of a name or a header that was changed at one place."""
