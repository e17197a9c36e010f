"""Fills in plain languages: how often the true one is offered, and how often a wrong one breaks a file."""
