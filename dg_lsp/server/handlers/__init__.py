"""Handlers: one module for each kind of request, of functions of a Snapshot, or of params, and a Context."""
