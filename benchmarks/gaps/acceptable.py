"""The kinds of gap that are sensible at a cut where none is asked for. Knows cases, not how kinds are chosen."""

from benchmarks.gaps.case import Case

_COMMENTS = (b"#", b"//", b"/*")


def acceptable(case: Case) -> frozenset[str]:
    """The kinds that are sensible at a cut; a body is none, as it would replace what has just been typed."""
    truth, at = case.truth, case.at
    if any(p.outer[0] < at <= p.outer[1] for p in truth.of("comment")):
        return frozenset(("comment", "rest_of_line", *_bodies_of_comments(case)))
    if any(p.outer[0] < at < p.outer[1] for p in (*truth.of("string"), *truth.of("docstring"))):
        return frozenset(("string", "docstring", "rest_of_line"))
    lists = [str(kind) for kind in ("arguments", "parameters", "collection") if truth.inner(kind, at)]
    # Until it has more than one word, a variable with arguments looks like a function with parameters.
    lists += ["parameters"] if truth.language.name in ("c", "cpp") and "arguments" in lists else []
    lists += ["string"] if any(p.start < at < p.end for p in truth.of("mixed")) else []
    return frozenset(("rest_of_line", "expression", "statement", *lists, *_bodies_of_comments(case)))


def _bodies_of_comments(case: Case) -> list[str]:
    """The kinds of the bodies round the cut in which nothing but comments is left."""
    data = case.data
    found = []
    for body in case.truth.bodies:
        if body.opens <= case.at <= body.closes:
            left = data[body.start : case.cursor]
            if all(line.strip().startswith(_COMMENTS) for line in left.split(b"\n") if line.strip()):
                found.append(body.kind)
    return [str(kind) for kind in found]
