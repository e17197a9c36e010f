"""What a document is likely to be next: the state after Enter at the end of a line, with the editor's indentation."""

from dataclasses import replace

from dg_lsp.text.documents.document import Document
from dg_lsp.text.documents.lines import leading, line_start
from dg_lsp.text.languages.language import load_language

_DEEPER = (b"(", b"[", b"{")


def next_line(document: Document, cursor: int) -> tuple[Document, int] | None:
    """Return `document` with a new line behind `cursor`, and the cursor on it; None if text follows on its line.

    The new line is indented like that of the cursor, deeper behind what opens a body or a bracket, and less deep behind
    a statement that leaves its body. Example: behind `    if x:` it begins with eight spaces.
    """
    data, eol = document.data, document.line_end(document.line_at(cursor))
    if data[cursor:eol].strip():
        return None
    language = load_language(document.language)
    line = data[line_start(data, cursor) : cursor].strip()
    indent = leading(data, cursor)
    step = b"\t" if b"\t" in indent else language.indent.encode()
    if line.endswith(_DEEPER) or (language.style == "indent" and line.endswith(b":")):
        indent += step
    elif line.split(b" ")[0] in language.leaves:
        indent = indent.removesuffix(step)
    new = document.newline.encode() + indent
    return replace(document, data=data[:cursor] + new + data[cursor:]), cursor + len(new)
