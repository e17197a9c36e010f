"""Python: texts of headers, stubs and docstrings for a file that cannot be read, and texts that Python checks."""

import re
import warnings

# A statement that marks a body as not written yet.
STUB = re.compile(rb"(?:pass|\.\.\.|raise[ \t]+NotImplemented(?:Error)?(?:[ \t]*\(.*\))?)[ \t]*;?", re.DOTALL)
DOCSTRING = re.compile(rb"[rRuU]?[\"'].*[\"']", re.DOTALL)
# The headers of functions and classes with their names, and those of blocks.
DEF = re.compile(rb"(?:async[ \t]+)?def[ \t]+([\w\x80-\xff]+)")
CLASS = re.compile(rb"class[ \t]+([\w\x80-\xff]+)")
BLOCK = re.compile(rb"(?:async[ \t]+)?(?:if|elif|else|for|while|with|try|except|finally|match|case)\b")
# What a body that is empty on purpose has above it: such a decorator, or the header of such a class.
ABSTRACT = re.compile(rb"@[^\r\n]*\b(?:abstract(?:|class|static)method|abstractproperty|overload)\b")
PROTOCOL = re.compile(rb"class\b[^\r\n]*\b(?:Protocol|Interface)\b|(?:el)?if\s[^\r\n]*\bTYPE_CHECKING\s*:")
# What Python calls a text that is compiled to be checked, in place of a file's name.
CHECKED = "<checked>"


def ignore_warnings() -> None:
    """Ignore Python's warnings about checked texts, such as invalid escapes, from the process's start on.

    `catch_warnings` changes the filters of the whole process for a block, also for other threads.
    """
    warnings.filterwarnings("ignore", module=CHECKED)
