"""Prompt styles: the tokens around those of a file, a file a style."""
