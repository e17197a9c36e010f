"""The rule for texts that are not parsed: recovery takes quadratic time in a long statement and cannot be stopped."""

import re

# What ends a statement, a label or an element of a list somewhere in any code, and a semicolon for all of it.
_SAME = bytes(59 if byte in b";{},:" else byte for byte in range(256))
# Nobody writes so many words and signs, or bytes, without any of them.
_MOST_TOKENS, _MOST_BYTES = 700, 1_400
# Comments that end, directives and strings do not count. Most files have no directives, and then not to look is faster.
_COMMENT_OR_STRING = (
    rb"//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/"
    rb"|\"[^\"\\\r\n]*+(?:\\.[^\"\\\r\n]*+)*+\"|'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+'"
)
_APART = re.compile(_COMMENT_OR_STRING, re.DOTALL)
_APART_OR_DIRECTIVE = re.compile(
    rb"^[ \t]*#(?:[^\r\n\\]|\\(?:\r\n|.))*|" + _COMMENT_OR_STRING, re.DOTALL | re.MULTILINE
)
_BLANKS = b" \t\r\n\f\v"
# Words as runs of one letter, and all that is in one or between two.
_WORDS = bytes(119 if c >= 128 or c in b"$_" or chr(c).isalnum() else 32 for c in range(256))
_NO_SIGNS = bytes(c for c in range(256) if _WORDS[c] == 119 or c in _BLANKS)


def is_endless(data: bytes) -> bool:
    """Return whether `data` has a statement of so many tokens up to its semicolon that nobody has written it.

    Example: `x => x => x => ...` some 300 times in Java. A long table of numbers has commas, so it is none.
    """
    if len(data) < _MOST_BYTES or max(map(len, parts := data.translate(_SAME).split(b";"))) < _MOST_BYTES:
        return False
    # What is far from a cursor is blank.
    if all(len(part) < _MOST_BYTES or len(part.translate(None, _BLANKS)) <= _MOST_TOKENS for part in parts):
        return False
    apart = _APART_OR_DIRECTIVE if b"#" in data else _APART
    code = apart.sub(b" ", data).translate(_SAME)
    long = (part for part in code.split(b";") if len(part) > _MOST_TOKENS)
    return any(count_tokens(part) > _MOST_TOKENS for part in long)


def count_tokens(text: bytes) -> int:
    """Return the number of words and signs in `text`, whatever its language: 4 for `f(a)`."""
    return len(text.translate(_WORDS).split()) + len(text.translate(None, _NO_SIGNS))


def left_open(text: bytes) -> tuple[int, ...]:
    """Return how many brackets of each kind `text` leaves open, fewer than 0 if it closes more; strings count, too."""
    pairs = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
    return tuple(text.count(opening) - text.count(closing) for opening, closing in pairs)
