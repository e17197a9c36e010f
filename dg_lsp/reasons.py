"""Reasons why nothing is filled, as exceptions whose message is a sentence for the user."""

SLOW = "reading the file takes too long, because its syntax is broken in a way that slows its parser down"

NO_WORD = "no word of the open files begins with the half-typed word before the cursor"


class NoGap(ValueError):
    """There is nothing to fill here."""


class OutOfTime(NoGap):
    """The text takes longer to read than its request may spend, or the request was cancelled meanwhile."""


class Unreadable(OutOfTime):
    """A parser cannot read one text in time; a smaller part of the text may be read in the time that remains."""

    def __init__(self, why: str = SLOW) -> None:
        super().__init__(why)


class TooDeep(Unreadable):
    """A parser would write past the end of its memory, and end the process, if it read one text."""
