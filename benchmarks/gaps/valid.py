"""The validity of a file, by its grammar and, for Python, by `ast`. Knows no gaps."""

import ast
import warnings

from dg_lsp.reasons import OutOfTime
from dg_lsp.source.language import Language


def is_valid(language: Language, data: bytes) -> bool:
    """Return whether `data` parses without an error, and in time."""
    if language.name == "python" and not is_python(data):
        return False
    try:
        return not language.parse(data).root_node.has_error
    except OutOfTime:
        return False


def is_python(data: bytes) -> bool:
    """Return whether `ast` takes `data`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
