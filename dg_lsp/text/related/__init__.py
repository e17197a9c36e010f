"""Related files: an index of the project, and candidates for a gap from it."""
