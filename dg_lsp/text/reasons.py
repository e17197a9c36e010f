"""Reasons why nothing is filled, as exceptions whose message is a sentence for the user."""


class NoGap(ValueError):
    """There is nothing to fill here."""


class OutOfTime(NoGap):
    """The text takes longer to read than its request may spend, or the request was cancelled meanwhile."""
