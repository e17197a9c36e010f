"""Engines: in this process, shared by the windows of a user, on a server of the team. Imports torch late."""
