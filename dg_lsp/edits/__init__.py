"""Edits: the other places of a change that was made at one place."""
