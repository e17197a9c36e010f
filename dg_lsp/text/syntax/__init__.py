"""Syntax: tokens, brackets, bodies and repairs of text that need not parse."""
