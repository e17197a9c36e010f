"""Filling: from an Infill to a Fill."""
