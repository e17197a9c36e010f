"""Fills: from a model's text to an edit that is safe."""
