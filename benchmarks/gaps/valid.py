"""Whether a file is valid: by its grammar and, for Python, by `ast`. Knows no gaps."""

import ast
import warnings

from dg_lsp.text.languages.language import Language


def is_valid(language: Language, data: bytes) -> bool:
    """Whether `data` parses without an error."""
    return (language.name != "python" or is_python(data)) and not language.parse(data).root_node.has_error


def is_python(data: bytes) -> bool:
    """Whether `ast` takes `data`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
