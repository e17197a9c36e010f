"""Files: written whole, kept as copies, excluded and ignored."""
