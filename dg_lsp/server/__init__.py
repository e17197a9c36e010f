"""The language server: between a client and an engine. Never imports torch."""
