"""What is kept of a text that cannot stand as it is: of a full canvas when the gap goes on, of a broken fill."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dg_lsp.text.fills import check, fit
from dg_lsp.text.fills.container import within
from dg_lsp.text.languages.language import Language, load_language
from dg_lsp.text.messages import BODIES, Infill
from dg_lsp.text.syntax.brackets import closers, state_at

_LINE_END = re.compile(r"\r\n|\n|\r")
# A line that begins so goes on with the one before it.
_GOES_ON = re.compile(r"[.?:,)\]}+*/%&|^=<>-]|(?:else|elif|except|finally|catch)\b")


def shorten(request: Infill, fill: str) -> str:
    """Return the longest beginning of `fill` in whole statements that adds no fault; empty if there is none.

    `a = 1\nb = (` becomes `a = 1`. A statement that the next line continues does not count, though it may parse.
    """
    if request.kind not in BODIES:
        # Of the other kinds a part is no use.
        return ""
    for text in _beginnings(load_language(request.language), fill):
        if not check.faults(request.language, request.kind, request.prefix, text, request.suffix):
            return text
    return ""


def _beginnings(language: Language, fill: str) -> Iterator[str]:
    """Yield the beginnings of `fill` that end with a line of code, longest first, without `fill` itself."""
    ends = [found.start() for found in _LINE_END.finditer(fill.rstrip())]
    for end in reversed(ends):
        text = fill[:end].rstrip()
        last = _LINE_END.split(text)[-1].strip()
        whole = last.endswith(";") or not _GOES_ON.match(fill[end:].lstrip())
        if last and whole and not last.startswith(language.comment):
            yield text


@dataclass(frozen=True, slots=True)
class Written:
    """The beginning of a fill: `text`, and whether the gap's container `ended` in it, so that nothing follows."""

    text: str = ""
    ended: bool = False


def go_on(request: Infill, before: str, more: str) -> Written:
    """Return what is kept of `before` + `more`: the text so far, and what one canvas wrote behind it.

    1. If the container closes in it, the fill is complete.  2. Keep whole lines, as long as the file can still parse
    with some end behind them.  3. Keep the last, cut line up to its last whole word, unless step 2 removed lines.

    The result is `before` if `more` adds nothing that can be kept.
    """
    # 1. Brackets and strings may have been opened in what stood before.
    whole = fit.plain(request, before + more)
    kept = within(load_language(request.language), request, whole)
    if whole[len(kept) :].strip():
        return Written(kept, ended=True)
    # 2.
    newline = fit.newline_of(request)
    first, last = _line_start(before, newline), _line_start(whole, newline)
    end = last
    while end > first and not _can_come_right(request, whole[:end]):
        end = _line_start(whole[: end - len(newline)], newline)
    # 3. A word that is cut would have to be finished token for token.
    cut = re.sub(r"\s*\w*$", "", whole[last:]) if end == last else ""
    text = whole[:end] + cut
    return Written(text if len(text) > len(before) else before)


def _can_come_right(request: Infill, lines: str) -> bool:
    """Whether some end behind `lines` makes the gap's container parse as well as before."""
    for ending in _endings(request, lines):
        fill = lines + ending
        if not check.faults(request.language, request.kind, request.prefix, fill, request.suffix):
            return True
    return False


def _endings(request: Infill, lines: str) -> Iterator[str]:
    """Yield short texts that may end what `lines` have begun, likeliest first."""
    language = load_language(request.language)
    placeholder = language.placeholder(request.kind)
    # The next statement stands as deep as the gap, or deeper where the last line opens a block.
    yield request.indent + placeholder
    # The fill's first line begins in the prefix.
    head = re.split(r"[\r\n]", request.prefix)[-1]
    lead = re.match(r"[ \t]*", re.split(r"[\r\n]", (head + lines).rstrip())[-1])
    yield (lead[0] if lead else "") + language.indent + placeholder
    # A bracket or a string may be open.
    data = (request.prefix + lines).encode("utf-8", "replace")
    state = state_at(language, data, len(data))
    if state.string or state.brackets:
        yield (state.string + closers(state.brackets)).decode()
    # A try needs its end, the outermost one at most.
    for opened in re.finditer(r"^([ \t]*)try\b", head + lines, re.MULTILINE):
        yield f"{opened[1]}finally: {placeholder}"


def _line_start(text: str, newline: str) -> int:
    """Return where the last line of `text` begins."""
    return text.rfind(newline) + len(newline) if newline in text else 0
