"""What Python itself says of a text: its grammar for tree-sitter takes more than `ast` does."""

import ast
import re
import warnings


def complaint(text: bytes) -> tuple[str, int, int] | None:
    """Return None if `ast` takes `text`; else its message, and the line and the byte column, both from 0."""
    # An indented function needs something above it that it may be indented under.
    lead = b"if 1:\n" if text[:1] in (b" ", b"\t", b"\f") else b""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse((lead + text).decode("utf-8", "replace"))
    except SyntaxError as error:
        message = re.sub(r" \((?:<unknown>|detected at).*\)$", "", error.msg or "a syntax error")
        column = len((error.text or "")[: max((error.offset or 1) - 1, 0)].encode("utf-8", "replace"))
        return message, (error.lineno or 1) - 1 - bool(lead), column
    except (ValueError, MemoryError, RecursionError):
        return "text that cannot be parsed", 0, 0
    return None
