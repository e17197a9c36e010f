"""Experiments and races; not in the wheel."""
