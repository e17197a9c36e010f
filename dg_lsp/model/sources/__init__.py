"""Sources: where a text for a gap can come from. Each is a file that yields Drafts and returns candidates."""
