"""Context: the part of a file and of other files that is sent to the engine."""
