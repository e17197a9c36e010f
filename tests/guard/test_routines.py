"""Bodies of routines in quotes: however many statements they have, reading them ends in time."""

import time
from contextlib import suppress

import pytest

from dg_lsp.budget import within
from dg_lsp.reasons import OutOfTime, Unreadable
from tests.guard.test_foreign import filled

SECONDS = 0.5
BODIES = (
    "a;",
    "x := 1;\n",
    "if a then b; end if;\n",
    "for x in y loop ",
    "begin ",
    "case when b then ",
    "a ",
    "$1 ",
)


@pytest.mark.parametrize("unit", BODIES)
def test_no_body_takes_longer_than_its_time(unit: str) -> None:
    body = unit * (38_000 // len(unit))
    text = f"CREATE FUNCTION f() RETURNS int AS $$\nBEGIN\n{body}\n‸\nRETURN 1;\nEND;\n$$ LANGUAGE plpgsql;\n"
    began = time.thread_time()
    with within(SECONDS), suppress(OutOfTime, Unreadable):
        filled("sql", text, "x := 2;")
    assert time.thread_time() - began < 4 * SECONDS
