"""Inside: a line for the cursor in the empty block that ends a text, where the user continues after accepting it."""

import re

from dg_lsp.gaps import Edit, step_near
from dg_lsp.source.brackets import unpaired
from dg_lsp.source.document import Document
from dg_lsp.source.language import load_language
from dg_lsp.source.lexer import leading, line_start

_EOL = r"(?:\r\n|\n|\r)"
_CLOSERS = rf"{_EOL}(?:[ \t]*[)\]}}][)\]}};,]*(?:{_EOL}|\Z))+\Z"
# What closes a block without lines, at the end of a text: `⏎}` of `if a {⏎}`, `⏎})` of `f(() => {⏎})`.
_EMPTY = re.compile(rf"(?<=\{{)[ \t]*(?={_CLOSERS})")
# What closes a block that has one line of white space.
_LINE = re.compile(rf"(?<=\{{)[ \t]*{_EOL}[ \t]+(?={_CLOSERS})")


def with_line_inside(document: Document, edit: Edit) -> Edit:
    """Return `edit` of `document` with an indented line in the empty block that it ends with, if there is one.

    Example: `if a {⏎}` becomes `if a {⏎    ⏎}`.
    """
    found = _EMPTY.search(edit.text)
    if found is None:
        return edit
    head, language = edit.text[: found.start()], load_language(document.language, document.macros)
    above = document.data[line_start(document.data, edit.start) : edit.start] + head.encode("utf-8")
    openers = unpaired(language, above).openers
    if not openers or openers[-1] != len(above) - 1:
        return edit
    indent = leading(above, len(above)).decode() + step_near(language, document.data, edit.start)
    below = edit.text[found.end() :]
    newline = "\r\n" if below.startswith("\r\n") else below[0]
    return Edit(edit.start, edit.end, head + newline + indent + below)


def place_inside(text: str) -> int | None:
    """Return the end of the line for the cursor in the empty block that ends `text`, in bytes; None without one."""
    found = _LINE.search(text)
    return len(text[: found.end()].encode("utf-8")) if found else None
