"""Bodies of routines in quotes: their statements end where they do in no body, and reading them ends in time."""

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


def routine(statements: str, declared: str = "  b text;\n") -> str:
    """A function of PL/pgSQL with `statements`, below `declared`."""
    head = f"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$\nDECLARE\n{declared}"
    return f"{head}BEGIN\n    {statements}\n    RETURN 1;\nEND;\n$$;\n"


@pytest.mark.parametrize(
    ("statements", "text"),
    [
        ("RETURN QUERY\n    DELETE FROM w\n    ‸\n    RETURNING w.id;", "WHERE a < 1"),
        ("UPDATE p\n    SET s = ‸\n    WHERE id = i\n    RETURNING id INTO b;", "'f'::t"),
        ("UPDATE p\n    SET ‸\n    WHERE id = i\n    RETURNING id INTO b;", "a = a + 1"),
        ("INSERT INTO p (a, c)\n    ‸\n    RETURNING id INTO b;", "VALUES (1, 2)"),
        (
            "INSERT INTO p (a, ‸\n    VALUES (1, 2)\n    ON CONFLICT DO NOTHING\n    RETURNING id into b;",
            "c)",
        ),
        ("INSERT INTO p ‸\n    VALUES (1, 2);", "(a, c)"),
        (
            "INSERT INTO p (a)\n    VALUES (1)\n    ‸\n    RETURNING id INTO STRICT b;",
            "ON CONFLICT DO NOTHING",
        ),
        ("SELECT a\n    ‸\n    INTO b;", "FROM c"),
        ("SELECT a FROM c\n    WHERE d = ‸\n    INTO b, e.g;", "1"),
        ("SELECT a INTO b FROM c\n    ‸\n    ORDER BY a\n    LIMIT 1;", "WHERE d"),
        ("‸\n    WHERE d = 1\n    FOR UPDATE\n    INTO b;", "SELECT a FROM c"),
        ("SELECT a INTO b FROM c\n    ‸\n    FOR UPDATE OF c SKIP LOCKED;", "WHERE d"),
        (
            "FOR b IN SELECT a FROM c ‸\n    ORDER BY a LOOP\n      RAISE NOTICE 'a';\n    END LOOP;",
            "WHERE d = 1",
        ),
        ("‸", "OPEN c FOR SELECT 1;"),
        ("‸", "OPEN c FOR EXECUTE 'a' USING b;"),
        ("‸", "FETCH NEXT FROM c INTO b;"),
        ("‸", "CLOSE c;"),
    ],
)
def test_a_statement_of_a_body_is_not_ended_above_what_continues_it(statements: str, text: str) -> None:
    marked = routine(statements)
    assert filled("sql", marked, text) == marked.replace("‸", text)


@pytest.mark.parametrize(
    ("statements", "text"),
    [
        ("SELECT a INTO b ‸\n    RETURN b;", "FROM c"),
        ("PERFORM f‸\n    RAISE;", "()"),
        ("UPDATE p SET a = ‸\n    b := 1;", "1"),
    ],
)
def test_one_that_is_complete_above_the_next_one_is(statements: str, text: str) -> None:
    marked = routine(statements)
    assert filled("sql", marked, text) == marked.replace("‸", text + ";")


@pytest.mark.parametrize(
    ("statements", "text"),
    [
        ("UPDATE p\n    SET a = a ‸\n    WHERE id = i;", "+ 1 WHERE id = i;"),
        ("UPDATE p\n    SET s = ‸\n    WHERE id = i;", "1;"),
        ("SELECT a ‸\n    FROM c\n    ORDER BY a;", "FROM c;"),
        ("SELECT a INTO b FROM c ‸\n    GROUP BY a\n    LIMIT 1;", "WHERE d;"),
        ("SELECT a FROM c WHERE d = ‸\n    INTO b, e;", "1;"),
        ("RAISE NOTICE 'a', ‸\n    b, c;", "1;"),
        ("INSERT INTO p (a, ‸\n    VALUES (1, 2);", "c);"),
        ("‸\n    WHERE d = 1\n    INTO b;", "b := 1;"),
        ("‸", "SELECT a INTO b INTO b;"),
        ("‸", "OPEN c FOR d e f;"),
        ("‸", "CLOSE;"),
    ],
)
def test_an_end_that_leaves_half_a_statement_below_is_refused(statements: str, text: str) -> None:
    assert filled("sql", routine(statements), text).startswith("<the fill would ")


@pytest.mark.parametrize(
    "text",
    [
        "ELSE",
        "EXCEPTION",
        "IF b THEN",
        "LOOP",
        "NULL;",
        "RETURN 1;",
        "RETURN b;",
        "SELECT 1;",
        "PERFORM f();",
        "b := 1;",
    ],
)
def test_a_statement_among_declarations_is_refused(text: str) -> None:
    assert filled("sql", routine("b := '';", "  b text;\n  ‸\n"), text).startswith("<the fill would ")


@pytest.mark.parametrize(
    "text", ["c d%ROWTYPE;", "comment text := 'a';", "c numeric( 1, 2 );", "start date;"]
)
def test_a_declaration_among_them_is_not(text: str) -> None:
    marked = routine("b := '';", "  b text;\n  ‸\n")
    assert filled("sql", marked, text) == marked.replace("‸", text)


def test_what_another_dialect_has_among_them_is_not() -> None:
    marked = "CREATE PROCEDURE f() $$\nBEGIN\n  DECLARE a INT;\n  IF a THEN\n    SET a = 1;\n  END IF;\n  ‸\nEND\n$$\n"
    assert filled("sql", marked, "SET a = 2;") == marked.replace("‸", "SET a = 2;")
