"""The language server: the protocol on one side, documents, settings and an engine on the other. Never sees torch."""
