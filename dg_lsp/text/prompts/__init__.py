"""Prompts: the part of a file that is sent to the engine."""
