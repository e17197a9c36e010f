"""The part of an unfinished, broken or unsure text to keep, and the place where it is broken."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dg_lsp.budget import bounded
from dg_lsp.guard import fit
from dg_lsp.guard.baseline import given_up, neutral_text
from dg_lsp.guard.check import faults_of, is_stub
from dg_lsp.guard.fit import within
from dg_lsp.guard.site import Fault, Site, newline_of, site_of, to_bytes
from dg_lsp.messages import BODIES, Infill
from dg_lsp.source.brackets import closers, state_at, unpaired
from dg_lsp.source.document import LINE_END
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import Span, Token, line_end, line_start, tokens

# A line that begins so continues the one before it.
_GOES_ON = re.compile(r"[.?:,)\]}+*/%&|^=<>-]|(?:else|elif|except|finally|catch)\b")
_ROUND = 6  # lines
# The same piece three times running, at the end of a line.
_PIECE = 80  # characters
_THRICE = re.compile(rf"(.{{8,{_PIECE}}}?)\1\1$")
# A sentence: up to a full stop that white space follows, or up to the end of its paragraph.
_SENTENCE = re.compile(r"(?s).*?(?:[.!?](?=\s)|(?=\r?\n[ \t]*\r?\n))")
NEAR = 2_000  # bytes after the fill that the parser is watched on
_SPACE = re.compile(rb"\s*")
# Places of a fill at which it is tried to end, the last ones first.
TRIES = 12
# Characters that are no white space and that a beginning has at least; fewer are typed sooner than read.
LEAST = 2
_WORD = re.compile(r"\w+")
_PART = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Written:
    """The beginning of a fill: `text`, and whether the gap's container `ended` in it, so that nothing follows."""

    text: str = ""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Break:
    """The first damaged place of a fill, in byte offsets of it.

    point: here every reading of the fill had failed, so the damage is near before it, or just after. end: of the first
    fault, at most a quarter of the fill after the point. line: the end of the point's line. closed: from the first
    bracket never closed to the end of its line. statement: the lines of the point, from the outermost bracket that is
    open there. faults: all of them.
    """

    point: int
    end: int
    line: int
    closed: Span | None
    statement: Span
    faults: tuple[Fault, ...]

    def after(self, before: str) -> "Break":
        """Return the same, counted from the end of `before`, a beginning of the fill; places inside that become 0."""
        skipped = len(to_bytes(before))

        def moved(span: Span) -> Span:
            return max(span[0] - skipped, 0), max(span[1] - skipped, 0)

        point, end = moved((self.point, self.end))
        line, _ = moved((self.line, self.line))
        return Break(point, end, line, self.closed and moved(self.closed), moved(self.statement), self.faults)


@bounded
def ended(request: Infill, text: str) -> Written:
    """Return the part of `text` in the gap's container, and whether that closes in it."""
    whole = fit.plain(request, text)
    kept = within(request, whole)
    return Written(kept, ended=bool(whole[len(kept) :].strip()))


def without_round(text: str) -> str:
    """Return `text` up to where its last lines, at most _ROUND, repeat those before them, as of a looping network."""
    lines = text.splitlines(keepends=True)
    whole = lines if text.endswith(("\n", "\r")) else lines[:-1]
    places = [place for place, line in enumerate(whole) if line.strip()]
    written = [whole[place].rstrip() for place in places]
    for count in range(1, min(_ROUND, len(written) // 2) + 1):
        last, before = written[-count:], written[-2 * count : -count]
        if len(written) == 2 * count:
            # The first line of a fill does not have the indentation, which is before the gap.
            last[0] = last[0].lstrip()
        if before == last:
            return "".join(whole[: places[-count - 1] + 1])
    return text


def goes_round(text: str) -> bool:
    """Return whether the last line of `text` ends with one piece with letters, numbers apart, three times running."""
    found = _THRICE.search(re.sub(r"\d+", "0", LINE_END.split(text)[-1])[-3 * _PIECE :])
    return found is not None and any(sign.isalpha() for sign in found[1])


def first_sentence(text: str) -> str:
    """Return the first sentence of `text`, or its first paragraph if that ends before; empty if neither ends."""
    found = _SENTENCE.match(text)
    return found[0].rstrip() if found else ""


@bounded
def go_on(request: Infill, before: str, more: str) -> Written:
    """Return the kept part of `before` + `more`: the text so far, and the text that one canvas wrote after it; or
    `before`.
    """
    # If the container closes in it, the fill is complete. Brackets and strings may have been opened in the text before.
    whole, written = fit.plain(request, before + more), ended(request, before + more)
    if written.ended:
        return written
    # Keep whole lines, as long as the file can still parse with some end after them.
    newline = newline_of(request)
    first, last = _line_start(before, newline), _line_start(whole, newline)
    end = last
    while end > first and all(faults_of(request, whole[:end] + e) for e in _endings(request, whole[:end])):
        end = _line_start(whole[: end - len(newline)], newline)
    # Keep the last, cut line up to its last whole word, unless lines were removed. A word that is cut would have to
    # be finished token for token.
    cut = re.sub(r"\s*\w*$", "", whole[last:]) if end == last else ""
    text = whole[:end] + cut
    return Written(text if len(text) > len(before) else before)


@bounded
def shorten(request: Infill, fill: str) -> str:
    """Return the longest beginning of `fill` in whole statements that adds no fault; empty if there is none.

    `fill` is that of a body or a span.

    `a = 1\nb = (` becomes `a = 1`. A statement that the next line continues does not count, though it may parse.
    """
    several = request.kind in (*BODIES, "span")
    starts = _beginnings(site_of(request).language, fill) if several else ()
    return next((text for text in starts if not faults_of(request, text)), "")


@bounded
def find_break(request: Infill, fill: str) -> Break | None:
    """Return the first damaged place of `fill` in the gap of `request`; None if it adds no fault (law 5)."""
    # Find the faults.
    found = faults_of(request, fill)
    if not found:
        return None
    # Take the place where the parser gave up, else that of the first fault.
    site, data = site_of(request), to_bytes(fill)
    language, point = site.language, resume_point(site, data)
    if point is None:
        point = found[0].start
    # Find how far the damage may reach, by the fault and by open brackets. An error may be as long as the fill; its end
    # tells nothing then.
    end = min(max(found[0].end, point), point + len(data) // 4)
    opened = unpaired(language, data).openers
    closed = (opened[0], line_end(data, opened[0])) if opened else None
    statement = _statement(language, data, (point, end))
    return Break(point, end, line_end(data, point), closed, statement, found)


def resume_point(site: Site, fill: bytes) -> int | None:
    """Return where the parser first gave up in `fill`, which begins something that parses; None if nowhere."""
    if site.language.is_plain:
        return None
    neutral = neutral_text(site)
    # A parser that logs is slow, and how it continues far after the fill is not asked for.
    following = neutral.site.after[:NEAR]
    # What is broken before the fill is not the fill's fault.
    point = next((p for p in given_up(neutral, fill + following) if p >= 0), None)
    cut = following != neutral.site.after and point is not None and point >= len(fill + following.rstrip())
    return None if point is None or cut else min(point, len(fill))


@bounded
def sure_beginning(request: Infill, text: str, sure: int) -> str:
    """Return the longest beginning of `text` within its first `sure` characters that fits the gap, empty for under
    LEAST.

    It ends with a whole word, a whole string, a closing bracket or a semicolon, leaves open nothing that it opens, and
    adds no fault (law 5). Of `first.total(x) + y`, sure up to `+`, `first.total(x)` is left; sure up to the bracket
    before `x`, `first.total`.
    """
    site = site_of(request)
    words = (word.end() for word in _WORD.finditer(text))
    ends = [end for end in (words if site.is_prose else _ends(site.language, text)) if end <= sure]
    last = (text[:end] for end in ends[: -TRIES - 1 : -1])
    return next((s for s in last if len("".join(s.split())) >= LEAST and _can_stand(request, s)), "")


def _beginnings(language: Language, fill: str) -> Iterator[str]:
    """Yield the beginnings of `fill` that end with a line of code, longest first, without `fill` itself."""
    ends = [found.start() for found in LINE_END.finditer(fill.rstrip())]
    for end in reversed(ends):
        text = fill[:end].rstrip()
        last = LINE_END.split(text)[-1].strip()
        whole = last.endswith(";") or not _GOES_ON.match(fill[end:].lstrip())
        if last and whole and not last.startswith(language.comment.decode()):
            yield text


def _endings(request: Infill, lines: str) -> Iterator[str]:
    """Yield short texts that may end what `lines` have begun, likeliest first."""
    language = site_of(request).language
    placeholder = language.placeholders[request.kind]
    # The next statement is as deep as the gap, or deeper where the last line opens a block.
    yield request.indent + placeholder
    # The fill's first line begins in the prefix.
    head = re.split(r"[\r\n]", request.prefix)[-1]
    lead = re.match(r"[ \t]*", re.split(r"[\r\n]", (head + lines).rstrip())[-1])
    yield (lead[0] if lead else "") + language.indent + placeholder
    # A bracket or a string may be open.
    data = to_bytes(request.prefix + lines)
    state = state_at(language, data, len(data))
    if state.string or state.brackets:
        yield (state.string + closers(state.brackets)).decode()
    # A try needs its end, the outermost one at most.
    for opened in re.finditer(r"^([ \t]*)try\b", head + lines, re.MULTILINE):
        yield f"{opened[1]}finally: {placeholder}"


def _line_start(text: str, newline: str) -> int:
    """Return where the last line of `text` begins."""
    return text.rfind(newline) + len(newline) if newline in text else 0


def _statement(language: Language, fill: bytes, span: Span) -> Span:
    """Return the lines of `span`, from the line of the outermost bracket that is open at its beginning."""
    point, end = span
    start = min([*unpaired(language, fill[:point]).openers, point])
    # The parser is before the white space; the token that could not follow is after it.
    space = _SPACE.match(fill, point)
    assert space is not None, "it matches nothing, too"
    return line_start(fill, start), line_end(fill, max(end, space.end()))


def _can_stand(request: Infill, text: str) -> bool:
    """Return whether `text` may be the whole fill: no syntax error, no stub, no word joined with the suffix."""
    if _PART.match(text[-1]) and _PART.match(request.suffix):
        return False
    if is_stub(request, text):
        return False
    return not faults_of(request, text)


def _ends(language: Language, text: str) -> Iterator[int]:
    """Yield where code may end, as far as its own brackets and strings tell."""
    data, depth, at, end = text.encode("utf-8", "replace"), 0, 0, 0
    known = tokens(language, data, 0, len(data))
    for token, following in zip(known, [*known[1:], None], strict=False):
        depth += (token.kind == "open") - (token.kind == "close" and depth > 0)
        if depth == 0 and _ends_here(data, token, following):
            end, at = end + len(data[at : token.end].decode("utf-8")), token.end
            yield end


def _ends_here(data: bytes, token: Token, following: Token | None) -> bool:
    """Return whether code may end with `token`: not with the `f` of `f"..."`, which the string after it belongs to."""
    if token.kind == "word":
        return following is None or following.kind not in ("string", "open_string")
    first = data[token.start : token.start + 1]
    return token.kind in ("close", "string") or first.isdigit() or first == b";"
