"""Prompt styles: the tokens around a file's own, one file a style."""
