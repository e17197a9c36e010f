"""Guard: what closes a text, whether it fits its place, and what harm it would do."""
