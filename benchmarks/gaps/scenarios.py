"""The scenarios by their short names: what was done to a valid file, for which kinds of gaps, in which languages.

Empty bodies and stubs are made here, damage besides that at the cursor in `damage`, all else in `cuts` and `parts`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from benchmarks.gaps import cuts, damage, parts
from benchmarks.gaps.acceptable import acceptable
from benchmarks.gaps.case import Case, Change, Make
from benchmarks.gaps.place import Place, Truth, indent_of, line_of
from benchmarks.gaps.sources import Corpus
from benchmarks.gaps.truth import truth_of
from dg_lsp.messages import Kind

# A place that does not lend itself to a scenario costs a try; a corpus may have few that do.
_TRIES = 60
_BODIES: tuple[Kind, ...] = ("function_body", "block")
_LISTS: tuple[Kind, ...] = ("arguments", "parameters", "collection")
_STUBS = {
    "python": (
        "pass", "...", "raise NotImplementedError", 'raise NotImplementedError("f")', "# TODO\npass", "# TODO",
        "pass  # TODO",
    ),
    "rust": ("todo!()", "// TODO", "unimplemented!()", 'todo!("f")', "// TODO\ntodo!()"),
    "go": ('panic("not implemented")', "// TODO", 'panic("TODO")', 'panic("unimplemented")', '// TODO\npanic("TODO")'),
    "cpp": (
        'throw std::logic_error("not implemented");', "// TODO", 'throw std::runtime_error("TODO");',
        'throw std::logic_error("Not implemented");', '// TODO\nthrow std::logic_error("not implemented");',
    ),
    "c": ("/* TODO */", "// TODO"),
    "csharp": (
        "throw new NotImplementedException();", "// TODO", 'throw new NotImplementedException("f");',
        'throw new InvalidOperationException("Not implemented");', "// TODO\nthrow new NotImplementedException();",
    ),
    "java": (
        "throw new UnsupportedOperationException();", "// TODO", 'throw new UnsupportedOperationException("f");',
        'throw new RuntimeException("Not implemented");', "// TODO\nthrow new UnsupportedOperationException();",
    ),
}  # fmt: skip
_ELSE = (
    'throw new Error("Not implemented");', "// TODO", 'throw new Error("not yet implemented");',
    'throw new Error("TODO: f");', '// TODO\nthrow new Error("Not implemented");',
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way in which files are broken. styles: of the languages that have it."""

    name: str
    kinds: tuple[Kind, ...]
    make: Make
    styles: tuple[str, ...] = ("indent", "brace")


def scenarios_of(style: str) -> list[Scenario]:
    """The scenarios of the languages of one style."""
    return [s for s in _scenarios() if style in s.styles]


def _scenarios() -> list[Scenario]:
    statements: tuple[Kind, ...] = (*_BODIES, "statement")
    indent, brace = ("indent",), ("brace",)
    cut = _accepting(acceptable)
    string = _accepting(lambda _: frozenset(("string", "docstring")))
    return [
        # The innermost block, or the function with its closers, cut at a random character.
        Scenario("a1", _BODIES, cut(cuts.without_tail)),
        Scenario("a1x", _BODIES, cut(cuts.without_end)),
        # One statement cut; the header of a compound statement cut, its suite left.
        Scenario("a2", statements, cut(cuts.within_statement)),
        Scenario("a2h", ("function_body",), cut(cuts.within_header), indent),
        # An empty body: the cursor where it opens, on an indented blank line, at column 0 or without the brace.
        Scenario("b1", ("function_body", "class_body"), _emptied("b1")),
        Scenario("b2", ("function_body", "class_body"), _emptied("b2")),
        Scenario("b3", ("function_body",), _emptied("b3")),
        # Stubs, such as `pass`.
        *(Scenario(f"c{n + 1}", ("function_body",), _stubbed(n)) for n in range(7)),
        # A list opened, empty, cut with the rest of its statement, cut before its closer.
        Scenario("d1", ("arguments", "collection"), cut(parts.opened_list)),
        Scenario("d2", _LISTS, cut(parts.empty_list)),
        Scenario("d3", ("arguments", "collection"), cut(parts.list_to_end)),
        Scenario("d4", _LISTS, cut(parts.list_to_bracket)),
        # An expression cut, with nothing behind it, and in a header.
        Scenario("e1", ("expression",), cut(parts.expression_to_end)),
        Scenario("e2", ("expression",), cut(parts.expression_in_header)),
        # A docstring or string cut, with and without its quotes.
        Scenario("f1", ("docstring",), string(parts.docstring_to_end), indent),
        Scenario("f2", ("docstring",), string(parts.string_to_quotes), indent),
        Scenario("f3", ("string",), string(parts.string_to_end), indent),
        Scenario("f1", ("string",), string(parts.string_to_end), brace),
        Scenario("f2", ("string",), string(parts.string_to_quotes), brace),
        # As a1, with other line ends and indentation.
        Scenario("k1", _BODIES, cut(_changed(damage.crlf, cuts.without_tail))),
        Scenario("k2", _BODIES, cut(_changed(damage.tabs, cuts.without_tail))),
        # As a1 or a2, with errors elsewhere, or a character or a line blanked above in the function.
        Scenario("h1", statements, cut(damage.elsewhere)),
        Scenario("h5", statements, cut(damage.blanked_character)),
        Scenario("h6", statements, cut(damage.blanked_line)),
    ]


def cases(corpus: Corpus, scenario: Scenario, kind: Kind, count: int, seed: int) -> Iterator[Case]:
    """At most `count` cases; the same corpus, scenario, kind and seed give the same ones."""
    rng = Random(f"{corpus.language.name} {scenario.name} {kind} {seed}")
    found = 0
    for _ in range(count * _TRIES if corpus.valid else 0):
        case = scenario.make(truth_of(corpus.language, rng.choice(corpus.valid)), kind, rng)
        if case is not None:
            found += 1
            yield case
        if found == count:
            return


def stubs_of(language: str) -> tuple[str, ...]:
    """The texts of a language that mark a body as not written yet."""
    return _STUBS.get(language, _ELSE)


def _accepting(rule: Callable[[Case], frozenset[str]]) -> Callable[[Make], Make]:
    """Makes of a scenario one whose cases know which kinds may be chosen."""

    def wrapped(make: Make) -> Make:
        def made(truth: Truth, kind: Kind, rng: Random) -> Case | None:
            case = make(truth, kind, rng)
            return case and replace(case, acceptable=rule(case))

        return made

    return wrapped


def _changed(change: Callable[[Truth], bytes | None], make: Make) -> Make:
    """A scenario in files that are the same but for their white space."""

    def made(truth: Truth, kind: Kind, rng: Random) -> Case | None:
        data = change(truth)
        return make(truth_of(truth.language, data), kind, rng) if data is not None else None

    return made


def _stubbed(number: int) -> Make:
    """A function's body replaced by one of the language's stubs, the cursor anywhere in it."""

    def made(truth: Truth, kind: Kind, rng: Random) -> Case | None:
        stubs = stubs_of(truth.language.name)
        place = rng.choice(truth.of(kind)) if truth.of(kind) else None
        if place is None or number >= len(stubs):
            return None
        newline = b"\n" + body_indent(truth, place)
        text = newline.join(stubs[number].encode().split(b"\n"))
        # A comment would take in what closes the body on its line.
        if b"//" in text and truth.data[place.end : line_of(truth.data, place.end)[1]].strip():
            return None
        change = Change(place.start, place.end, text)
        back = rng.randrange(len(text) + 1)
        return Case(truth, place, (change,), place.end, back, _kinds(truth, place))

    return made


def _emptied(name: str) -> Make:
    """A body gone: the cursor where it opens, on an indented blank line, or where its closer is missing."""

    def made(truth: Truth, kind: Kind, rng: Random) -> Case | None:
        place = rng.choice(truth.of(kind)) if truth.of(kind) else None
        if place is None:
            return None
        data, indent = truth.data, body_indent(truth, place)
        kinds = _kinds(truth, place)
        if truth.language.style == "indent":
            # A docstring's end is no empty body.
            if data[: place.opens].endswith((b'"', b"'")):
                return None
            text = {"b1": b"", "b2": b"\n" + indent, "b3": b"\n"}[name]
            return Case(truth, place, (Change(place.opens, place.end, text),), place.end, 0, kinds)
        if name == "b1":
            return Case(truth, place, (Change(place.opens, place.closes),), place.opens, 0, kinds)
        opened = Change(place.opens, place.end, b"\n" + indent)
        stop = cuts.behind_brace(data, place)
        if name == "b3":
            return (
                Case(truth, place, (Change(place.opens, stop, opened.text),), place.end, 0, kinds)
                if stop
                else None
            )
        closed = Change(place.end, place.closes, b"\n" + indent_of(data, place.outer[0]))
        return Case(truth, place, (opened, closed), place.end, 0, kinds)

    return made


def _kinds(truth: Truth, place: Place) -> frozenset[str]:
    """The kinds that may be chosen in a body that is not written: itself, and less where emptiness may be meant."""
    meant = place.kind == "class_body" or any(p.start == place.outer[0] for p in truth.of("meant"))
    return frozenset((place.kind, "statement", "rest_of_line") if meant else (place.kind,))


def body_indent(truth: Truth, place: Place) -> bytes:
    """The white space that the lines of a body begin with."""
    data = truth.data
    inside = data[line_of(data, place.start)[0] : place.start]
    if not inside.strip():
        return inside
    return indent_of(data, place.outer[0]) + truth.language.indent.encode()
