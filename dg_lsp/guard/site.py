"""Site: a gap between two texts of one language, the strings and brackets that are open there, and faults of a fill."""

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from dg_lsp.gaps import Edit, Gap, open_at
from dg_lsp.messages import PARTS, STRINGS, Infill
from dg_lsp.source.brackets import State, state_at
from dg_lsp.source.document import LINE_END, Document
from dg_lsp.source.language import Language, load_language
from dg_lsp.source.lexer import indentation, line_end, line_start

# The beginning of a statement of its own, and of no text that continues one.
_STATEMENT = re.compile(rb"[\w$@#\\\"'`\x80-\xff]")


@dataclass(frozen=True)
class Site:
    """A gap of a `kind` between the texts `before` and `after`; what is read of them is read once.

    asked: whether the gap was asked for by name; true if that is not known.
    """

    language: Language
    kind: str
    before: bytes
    after: bytes
    asked: bool = True

    @cached_property
    def state(self) -> State:
        """The state at the gap."""
        if self.language.is_plain:
            return open_at(self.language, self.before, len(self.before))
        return state_at(self.language, self.before, len(self.before))

    @cached_property
    def line(self) -> int:
        """The offset where the gap's line begins."""
        return line_start(self.before, len(self.before))

    @cached_property
    def rest(self) -> bytes:
        """The rest of the line after the gap."""
        return self.after[: line_end(self.after, 0)]

    @property
    def closers(self) -> bytes:
        """The text that closes what the line of the gap has opened before it; empty if code follows on the line."""
        if not self.is_part or self.rest.strip():
            return b""
        string = self.state.string if self.state.begins >= self.line else b""
        return string + self.state.closing(at for at in self.state.opened if at >= self.line)

    @property
    def is_prose(self) -> bool:
        """Return whether the gap is in a string or a comment."""
        return self.kind in (*STRINGS, "comment")

    @property
    def is_part(self) -> bool:
        """Return whether the gap is a part of a line of code."""
        return self.kind in PARTS and not self.is_prose

    @property
    def may_end_blocks(self) -> bool:
        """Return whether the fill may end blocks and open what ends after it: a line or a span that was asked for."""
        return self.asked and self.kind in ("rest_of_line", "span")

    def between(self, before: bytes, after: bytes) -> "Site":
        """Return the same gap between other texts."""
        return replace(self, before=before, after=after)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a fill: a half-open byte span inside it, and a sentence for the user."""

    start: int
    end: int
    message: str


def fault_at(fill: bytes, start: int, end: int, what: str) -> Fault:
    """Return the fault that fill[start:end] is `what`, with the number of its line in the message."""
    line = len(re.findall(rb"\r\n|\n|\r", fill[:start])) + 1
    return Fault(start, end, f"{what} at line {line} of the fill")


@lru_cache(maxsize=2)
def _site(language: Language, kind: str, texts: tuple[bytes, bytes], *, asked: bool) -> Site:
    """The site of the last requests, which all candidates of one request ask for."""
    return Site(language, kind, *texts, asked)


@lru_cache(maxsize=2)
def site_of(request: Infill) -> Site:
    """Return the site of the gap of `request`."""
    language = load_language(request.language, request.macros)
    return _site(language, request.kind, (to_bytes(request.prefix), to_bytes(request.suffix)), asked=True)


def site_of_edit(document: Document, gap: Gap, edit: Edit) -> tuple[Site, bytes]:
    """Split the text after `edit`, made for `gap` of `document`, into the site around the fill, and the fill."""
    inner = edit.text.removeprefix(gap.insert_before)
    fill = inner.removesuffix(gap.insert_after) if gap.insert_after else inner
    before = document.data[: edit.start] + to_bytes(gap.insert_before)
    after = to_bytes(gap.insert_after) + document.data[edit.end :]
    language = load_language(document.language, document.macros)
    return _site(language, gap.kind, (before, after), asked=gap.asked), to_bytes(fill)


def next_line(site: Site) -> int | None:
    """Return where the text of the next line begins, from the gap's end, if it is no deeper than the gap's own line.

    None if it is deeper, if the gap's line continues after the gap, or if what is below begins no statement.
    """
    if site.rest.strip():
        return None
    at = len(site.after) - len(site.after[len(site.rest) :].lstrip())
    if not _STATEMENT.match(site.after, at) or indentation(site.after, at) > indentation(
        site.before, site.line
    ):
        return None
    return at


def newline_of(request: Infill) -> str:
    """Return the line end of the gap's own line; on the last line that of the line above; in a file of one line LF."""
    if own := LINE_END.search(request.suffix):
        return own[0]
    lines = request.prefix.splitlines(keepends=True)
    above = next((end for line in reversed(lines) if (end := LINE_END.search(line))), None)
    return above[0] if above else "\n"


def to_bytes(text: str) -> bytes:
    """Return `text` in UTF-8, with `?` for lone surrogates."""
    return text.encode("utf-8", "replace")
