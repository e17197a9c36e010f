"""Python: the texts of headers, stubs and docstrings, for a file that its grammar cannot read."""

import re

# A statement that marks a body as not written yet.
STUB = re.compile(rb"(?:pass|\.\.\.|raise[ \t]+NotImplemented(?:Error)?(?:[ \t]*\(.*\))?)[ \t]*;?", re.DOTALL)
DOCSTRING = re.compile(rb"[rRuU]?[\"'].*[\"']", re.DOTALL)
# The headers of functions and classes with their names, and those of blocks.
DEF = re.compile(rb"(?:async[ \t]+)?def[ \t]+([\w\x80-\xff]+)")
CLASS = re.compile(rb"class[ \t]+([\w\x80-\xff]+)")
BLOCK = re.compile(rb"(?:async[ \t]+)?(?:if|elif|else|for|while|with|try|except|finally|match|case)\b")
# What a body that is empty on purpose has above it: such a decorator, or the header of such a class.
ABSTRACT = re.compile(rb"@[^\r\n]*\b(?:abstract(?:|class|static)method|abstractproperty|overload)\b")
PROTOCOL = re.compile(rb"class\b[^\r\n]*\bProtocol\b")
