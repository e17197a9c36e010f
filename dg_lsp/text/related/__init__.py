"""What other files say: an index of the project, and candidates for a gap out of it."""
