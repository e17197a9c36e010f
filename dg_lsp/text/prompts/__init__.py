"""Prompts: what of a file is sent to the engine."""
