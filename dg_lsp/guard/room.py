"""Room: a fill judged by its tokens, or alone, for a gap in code that no parser can read: modern syntax, a template.

Tokens show brackets left open or closed twice. A room is a small text of a header and the gap's own statement.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from dg_lsp.budget import bounded
from dg_lsp.guard.baseline import Text, searched
from dg_lsp.guard.loose import loose_literal
from dg_lsp.guard.site import Fault, Site, fault_at
from dg_lsp.messages import BODIES
from dg_lsp.source.brackets import PAIRS, OpenBracket, closers, read, state_at, unpaired
from dg_lsp.source.items import head_of
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import leading, tokens

# A line of its own that ends with a value, and text that begins one.
_OWN_LINE = re.compile(rb"(?:(?![\r\n])\s)*+[\r\n].*[\w)\]}\"'`\x80-\xff]\s*\Z", re.DOTALL)
_NEXT_VALUE = re.compile(rb"\s*[\w\"'`\x80-\xff]")
# A value in front of an element of JSX, which parsers read as a comparison.
_LAST_VALUE, _NEXT_ELEMENT = re.compile(rb"[\w)\]}\"'`>\x80-\xff]\s*\Z"), re.compile(rb"\s*<[A-Za-z>]")
# So many bytes after a gap are looked at for brackets that close what a fill has opened.
REACH = 20_000
# An open list of types on a line, such as `Map<String, `; an angle bracket that is no part of an arrow or comparison.
_TYPES = re.compile(rb"[\w$] ?<[^<>;(){}]*\Z")
_ANGLE = re.compile(rb"<(?!=)|(?<![-=])>(?!=)")
_NEAR = 2_000  # bytes after a gap that may close what the line of the gap has opened


@lru_cache(maxsize=4)
def room_of(site: Site, closed: int = 0) -> Text | None:
    """Return a neutral filler in a small text that parses, such as in the header of the gap's method; None without.

    closed: how many brackets of its statement a fill closes itself.
    """
    if site.state.string or site.state.comment:
        return None
    line = _statement(site)
    rooms = (
        room
        for header in _headers(site, line)
        for below in _below(site)
        for room in _rooms(site, header, line, below, closed)
    )
    return next((room for room in rooms if room.clean), None)


@lru_cache(maxsize=4)
def room_of_file(site: Site) -> Text | None:
    """Return a neutral filler at a file's level, below a function; None if the gap is in a block, or in no whole file.

    There a statement may be none, which a part of the file alone does not show.
    """
    line = _statement(site)
    if (
        site.language.style == "indent"
        or site.state.brackets
        or _braces(site, line)
        or not _is_below_wall(site)
    ):
        return None
    rooms = (room for below in _below(site) for room in _rooms(site, _wall(site.language), line, below, 0))
    return next((room for room in rooms if room.clean), None)


def _wall(language: Language) -> bytes:
    """Return an empty function, which a part of a function does not follow."""
    header = language.rooms["function"]
    return header + closers(b"{" * header.count(b"{")) + b"\n"


def _braces(site: Site, line: int) -> list[OpenBracket]:
    """Return the braces that are open before the offset `line`."""
    stack = read(site.language, site.before, site.state.start, len(site.before)).stack
    return [one for one in stack if one.bracket == b"{" and one.at < line]


def _statement(site: Site) -> int:
    """Return where the statement of the gap begins; of a body its line."""
    return site.line if site.kind in BODIES else min(max(site.state.line, 0), site.line)


@bounded
def left_open(site: Site, fill: bytes) -> tuple[Fault, ...]:
    """Return a fault if `fill` closes or opens brackets, or begins a string or comment, for others to end.

    It may close brackets of its own statement or line: in `f(a|` the fill `, b)` does. Those it opens may be closed on
    the rest of its line, as `g(` in `f(|))` is, or below it by a bracket that nothing else has opened.
    """
    language, state, is_body = site.language, site.state, site.kind in BODIES
    if state.string or state.comment:
        if not is_misread(site):
            return ()
        state = replace(state, brackets=b"", opened=(), string=b"", comment=False)
    first = len(site.before) if is_body else min(state.line, site.line)
    pairs = zip(state.brackets, state.opened, strict=True)
    own = bytes(bracket for bracket, at in pairs if at >= first)
    rest = b"" if is_body else site.rest
    left = bytearray(own)
    if wrong := _wrong_token(language, fill, left):
        return wrong
    if loose := loose_literal(site, fill):
        return (fault_at(fill, loose.start, loose.end, loose.what),)
    opened = unpaired(language, rest, bytes(left)).outer - unpaired(language, rest, own).outer
    outer = state.brackets[: len(state.brackets) - len(own)]
    if opened > 0 and (
        opened > _closed_after(site, state.brackets) or not _are_closed(site, outer, (own, bytes(left)))
    ):
        return (fault_at(fill, len(fill), len(fill), f"a missing `{closers(bytes(left[-1:])).decode()}`"),)
    element = language.jsx and _LAST_VALUE.search(fill) and _NEXT_ELEMENT.match(site.after)
    if site.is_part and left and (element or (_OWN_LINE.match(fill) and _NEXT_VALUE.match(site.after))):
        return (fault_at(fill, len(fill), len(fill), "a missing `,`"),)
    return ()


# Reading so much text for each beginning of each draft would take longer than the network.
@lru_cache(maxsize=4)
def _closed_after(site: Site, brackets: bytes) -> int:
    """Return how many brackets the text near after the gap closes that neither it nor `brackets` open."""
    return len(unpaired(site.language, site.after[:REACH], brackets).closers)


def _are_closed(site: Site, outer: bytes, own: tuple[bytes, bytes]) -> bool:
    """Return whether the text near after the gap closes, each by its mate, what a fill opens in the brackets `outer`.

    own: the brackets of the gap's statement that are open without the fill, and with it.
    """
    after, (before, left) = site.after[:REACH], own
    without, closed = (len(unpaired(site.language, after, outer + opened).closers) for opened in own)
    return without - closed >= len(left) - len(before)


@bounded
def is_in_header(site: Site, fill: bytes) -> bool:
    """Return whether `fill` leaves a round bracket open in front of a colon that ends the line: a header closes it."""
    pairs = zip(site.state.brackets, site.state.opened, strict=True)
    own = bytes(bracket for bracket, at in pairs if at >= site.line)
    found = unpaired(site.language, fill, own)
    innermost = fill[found.openers[-1] :] if found.openers else own[: found.outer][-1:]
    return site.rest.strip() == b":" and innermost.startswith(b"(")


def is_complete(site: Site, fill: bytes) -> bool:
    """Return whether `fill` is code that leaves nothing for others to end; it may end the string of its line."""
    if site.state.string and site.state.begins >= site.line:
        begins = site.state.begins
        site, fill = site.between(site.before[:begins], site.after), site.before[begins:] + fill
    quoted = site.state.string or site.state.comment or site.state.text or fill.endswith(b"\\")
    return not (quoted or left_open(site, fill))


def doubled(site: Site, fill: bytes) -> int | None:
    """Return where `fill` closes a bracket that is closed after the gap of `site`; None if it does not.

    For the gap in `f(a[|])` and the fill `0])` it is 1. It counts the brackets alone, however broken the text is.

    1. A fill that closes an angle bracket of types before one that closes it ends there.  2. Of brackets only a fill
    that closes others than its own, before a rest of the line that does so too, is looked at.  3. The longest beginning
    of the fill stays with which the text near after it closes no more than with nothing in the gap.
    """
    language, state = site.language, site.state
    # 1.
    if site.rest.lstrip().startswith(b">") and _TYPES.search(site.before, site.line):
        angled = _surplus_angle(fill)
        if angled is not None:
            return angled
    # 2.
    own = unpaired(language, fill).closers
    if not own or not unpaired(language, site.rest).closers or state.string or state.comment:
        return None
    # 3.
    earlier = sum(at < site.line for at in state.opened)
    following = site.after[: max(len(site.rest), _NEAR)]

    def excess(text: bytes) -> int:
        """Return how many brackets `text` closes that are not open, or leaves open as it closes one around them."""
        stack, wrong = [state.brackets[at : at + 1] for at in range(len(state.brackets))], 0
        least = len(stack)
        for token in tokens(language, text, 0, len(text)):
            bracket = text[token.start : token.end]
            if token.kind == "open":
                stack.append(bracket)
            elif token.kind == "close":
                fitting = [n for n, one in enumerate(stack) if PAIRS[one] == bracket]
                wrong += len(stack) - 1 - fitting[-1] if fitting else 1
                del stack[fitting[-1] if fitting else len(stack) :]
                least = min(least, len(stack))
        return wrong + max(earlier - least, 0)

    most = excess(following)
    shorter = [fill, *(fill[:at] for at in reversed(own))]
    found = (beginning for beginning in shorter if excess(beginning + following) <= most)
    kept = next(found, shorter[-1])
    return len(kept) if len(kept) < len(fill) else None


def _wrong_token(language: Language, fill: bytes, opened: bytearray) -> tuple[Fault, ...]:
    """Return a fault at the first token of `fill` that no text before it explains; changes the brackets `opened`."""
    word = b""
    for token in tokens(language, fill, 0, len(fill)):
        text, what = fill[token.start : token.end], ""
        if text == b":" and word in language.words.blocks and language.style == "brace":
            what = f"unexpected `{word.decode()}:`"
        elif token.kind == "close" and (not opened or closers(bytes([opened.pop()])) != text):
            what = "an unmatched closing bracket"
        if what:
            return (fault_at(fill, token.start, len(fill), what),)
        opened += text if token.kind == "open" else b""
        word = word if token.kind == "space" else text
    return ()


def is_misread(site: Site) -> bool:
    """Return whether the gap, which is in code, is in a string or comment that began lines above by its state."""
    return 0 <= site.state.begins < site.line


def closed_by(site: Site, fill: bytes) -> int | None:
    """Return how many brackets of its statement `fill` closes; None if it leaves one open, or closes others.

    A header without its body leaves that open.
    """
    pairs = zip(site.state.brackets, site.state.opened, strict=True)
    own = bytes(bracket for bracket, at in pairs if at >= _statement(site))
    found = unpaired(site.language, fill, own)
    headed = site.language.style == "indent" and fill.rstrip().endswith(b":")
    return None if found.closers or found.openers or headed else len(own) - found.outer


def closes_more(site: Site, text: bytes) -> bool:
    """Return whether with `text` in the gap of `site` more brackets are closed than opened than without."""
    if site.state.string or site.state.comment:
        return False
    after = site.after[:REACH]
    with_text, without = (
        len(unpaired(site.language, t, site.state.brackets).closers) for t in (text + after, after)
    )
    return with_text > without


def _headers(site: Site, line: int) -> Iterator[bytes]:
    """Yield headers of bodies that may contain the statement that begins at `line`, the likeliest first."""
    language, before = site.language, site.before
    if language.style == "indent":
        yield language.rooms["function"] + b"\n" if before[line : line + 1].isspace() else b""
        return
    braces = _braces(site, line)
    heads = [(o.at, head) for o in braces if (head := head_of(language, before, o.line, o.at))]
    if not heads:
        if not braces and _is_below_wall(site):
            yield _wall(language)
        yield b""
        return
    at, head = heads[-1]
    own = before[head.start : at + 1] + b"\n"
    if head.owner == "function":
        yield own
        yield language.rooms["class"] + b"\n" + own
    elif head.owner == "block":
        yield language.rooms["function"] + b"\n" + own
    else:
        yield own
    yield language.rooms[head.owner] + b"\n"


def _is_below_wall(site: Site) -> bool:
    """Return whether the text before the gap has what a part of a function has not, such as an import.

    A text of comments alone, or of those and what belongs to the item below, such as an annotation, is of a file, too.
    """
    language, before = site.language, site.before
    root = language.parse(before).root_node
    if any(wall.end_byte <= len(before) for wall in language.captures(root).get("wall", ())):
        return True
    above = (node.is_extra or language.words.above.match(before, node.start_byte) for node in root.children)
    return bool(root.children) and all(above)


def _below(site: Site) -> Iterator[bytes]:
    """Yield texts that may follow the gap's line: some statement where there is one, then nothing."""
    below = site.after[len(site.rest) :].lstrip()
    if site.kind not in BODIES:
        if below.startswith(b"{"):
            yield b"{}\n"
        # The indentation of the gap's line may not be the block's.
        if site.language.style == "brace" and below and not below.startswith((b"}", b")", b"]")):
            yield site.language.words.member + b"\n"
    yield b""


def _rooms(site: Site, header: bytes, line: int, below: bytes, closed: int) -> Iterator[Text]:
    """Yield the best filler between a header with the statement from `line` on, and its closed rest and `below`."""
    language, begun = site.language, site.before[line:]
    before, rest = header + begun, b"" if site.kind in BODIES else site.rest
    state = state_at(language, before + rest, len(before + rest), 0)
    own = [at for at in state.opened if at >= len(header)]
    outer = state.closing(at for at in state.opened if at < len(header))
    following = b"\n" + leading(begun, 0) + below + outer + b"\n"
    own = own[: len(own) - closed]
    for end in dict.fromkeys((b"", *language.words.ends)) if own else (b"",):
        yield searched(site.between(before, rest + state.closing(own) + end + following))


def _surplus_angle(fill: bytes) -> int | None:
    """Return where `fill` closes an angle bracket that it has not opened; None if it does not."""
    depth = 0
    for found in _ANGLE.finditer(fill):
        depth += 1 if found[0] == b"<" else -1
        if depth < 0:
            return found.start()
    return None
