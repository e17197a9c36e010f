"""Texts that a person reads, such as names of files in messages: what could control where they are shown is visible."""

import re

# Characters that control a terminal, end a line, change the direction of text, or are half a character.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LINE_END = re.compile(r"[ \t]*[\r\n]\s*")
_LONGEST = 1_000  # characters of a sentence
_ENDING = 300  # of these, those at its end


def shown(text: str, kept: str = "") -> str:
    r"""Return `text` with an escape such as `\x1b` for each character that controls a terminal, except those `kept`."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in kept else ascii(found[0])[1:-1], text)


def sentence(text: str) -> str:
    """Return `text` as one line that controls nothing; the middle of a very long one is left out."""
    line = shown(_LINE_END.sub(" ", text))
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST - _ENDING - 3]} … {line[-_ENDING:]}"
