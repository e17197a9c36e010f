"""Documents: one buffer as bytes, its lines, its history."""
