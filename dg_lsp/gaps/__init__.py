"""Gaps: where a fill begins and ends."""
