"""Faults of a fill, given by its parts instead of a request."""

from typing import cast

from dg_lsp.guard.check import faults_of
from dg_lsp.guard.site import Fault
from dg_lsp.messages import Infill, Kind


def faults(language: str, kind: str, before: str, fill: str, after: str) -> tuple[Fault, ...]:
    """The syntax errors that `fill` adds between `before` and `after`."""
    return faults_of(Infill(before, after, language, cast(Kind, kind)), fill)
