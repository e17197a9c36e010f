"""Flaws of a body that can be shown: unused parameters, a call of itself alone, undefined names, a part left out.

A body with fewer flaws is shown first. Of 300 functions of code that was in no training 20 leave a parameter unnamed
and none only calls itself; of the bodies that `small` wrote for them 53 and 11 do. In Python names are looked up by the
interpreter's own scopes: of 115 such bodies 5 seem to name what nothing defines, since the prefix is cut; of those that
`small` wrote, 23 do (docs/research/bodies.md).
"""

import builtins
import re
import symtable
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from tree_sitter import Node

from dg_lsp.budget import bounded
from dg_lsp.guard.site import site_of
from dg_lsp.messages import BODIES, Infill
from dg_lsp.source.bodies import unwritten
from dg_lsp.source.document import LINE_END
from dg_lsp.source.language import WORD, Language
from dg_lsp.source.lexer import Span
from dg_lsp.source.python import CHECKED

# Names that each module has, and `__class__`, which each method has.
_ALWAYS = frozenset(dir(builtins)) | {"__class__", "__file__", "__name__", "__path__"}
# What symtable calls functions that have no name.
_NAMELESS = {"lambda", "listcomp", "setcomp", "dictcomp", "genexpr"}
# The kinds of gap on an empty line that take a statement.
_STATEMENTS = ("statement", "rest_of_line")
# Where the function of a gap ends, at the latest: in front of a line that is not indented.
_OUTSIDE = re.compile(r"(?<=[\r\n])[^\s#]")
# A line in place of code that is yet to be written.
_LEFT_OUT = re.compile(
    r"(?m)^[ \t]*(?:\.\.\.;?[ \t]*$|(?:todo|unimplemented)!\(|(?:raise|throw|panic)\b.*not[ _]?(?:yet )?implemented)"
    r"|(?://|#|/\*)[ \t]*(?:TODO|(?:your|rest of the) code|implement)\b",
    re.IGNORECASE,
)
# What is read in a header and is no parameter: types, defaults, annotations.
_ASIDE = {"type", "value", "default_value", "right", "returns"}


@dataclass(frozen=True, slots=True)
class Signature:
    """The name and the parameters of the function whose body is missing, as far as its body is to name them.

    name: empty where another function has it, too. parameters: without those that the rest of the body names, that
    begin with an underscore, or that the language itself gives (`self`).
    """

    name: str = ""
    parameters: frozenset[str] = frozenset()

    def flaws(self, body: str) -> int:
        """Count the parameters that `body` does not name, and 1 more for one line that calls the function itself."""
        own = rf"(?<![\w.>:])(?:(?:self|cls|this|Self)(?:\.|->|::))?{re.escape(self.name)}\("
        calls_itself = bool(self.name and "\n" not in body and re.search(own, body))
        return len(self.parameters.difference(WORD.findall(body))) + calls_itself


@bounded
def flaws_of(request: Infill) -> Callable[[str], int]:
    """A function that counts the flaws of a body for the gap of `request`; 0 for gaps of other kinds."""
    signature = signature_of(request)
    code = request.kind in BODIES
    names = request.kind == "function_body" and request.language == "python"

    @cache
    def flaws(body: str) -> int:
        unknown = undefined(request.prefix, body, request.suffix) if names else ()
        return signature.flaws(body) + len(unknown) + (len(_LEFT_OUT.findall(body)) if code else 0)

    return flaws


def signature_of(request: Infill) -> Signature:
    """The Signature of the function whose body is to be written; an empty one for all other gaps."""
    if request.kind != "function_body":
        return Signature()
    site = site_of(request)
    found = unwritten(site.language, site.before, site.after)
    if found is None:
        return Signature()
    own, name = found.own, found.own.header.last_name
    following = len(found.data) - len(site.after)
    rest = found.data[own.opens : len(site.before)] + found.data[following : own.stop]
    known = site.language.own_words.union(WORD.findall(rest.decode("utf-8", "replace")))
    parameters = _parameters(site.language, found.root, (own.header.define, own.header.opens))
    return Signature(
        "" if any(one != own and one.header.last_name == name for one in found.functions) else name,
        frozenset(one for one in parameters if one not in known and not one.startswith("_")),
    )


def undefined(prefix: str, body: str, suffix: str) -> frozenset[str]:
    """The names that a Python function uses and nothing defines, once `body` follows `prefix`.

    All words of `suffix` in lines that are not indented count as defined, since it may be cut. Empty where the file
    does not parse or has an `import *`.
    """
    try:
        module = symtable.symtable(f"{prefix}{body}\n", CHECKED, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    tables = list(_tables(module))
    last = prefix.rstrip().count("\n") + 1  # the line of the header, or of the docstring
    named = (t for t in tables if t.get_type() == "function" and t.get_name() not in _NAMELESS)
    functions = [table for table in named if table.get_lineno() <= last]
    if not functions or "import *" in prefix:
        return frozenset()
    known = _ALWAYS.union(*(WORD.findall(one) for one in suffix.splitlines() if one[:1].strip()))
    known |= {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    known |= {s.get_name() for table in tables for s in table.get_symbols() if s.is_declared_global()}
    own = max(functions, key=lambda table: table.get_lineno())
    used = (s for table in _tables(own) for s in table.get_symbols() if s.is_global() and s.is_referenced())
    return frozenset(s.get_name() for s in used) - known


def missing_name(request: Infill) -> str:
    """The first name that a Python function uses after an empty line and nothing defines; empty if there is none.

    A name that is called there does not count: it may be defined in a part of the file that is not sent.
    """
    head, rest = LINE_END.split(request.prefix)[-1], LINE_END.split(request.suffix, 1)[0]
    if request.language != "python" or request.kind not in _STATEMENTS or (head + rest).strip():
        return ""
    outside = _OUTSIDE.search(request.suffix)
    end = outside.start() if outside else len(request.suffix)
    own, following = request.suffix[:end], request.suffix[end:]
    unknown = undefined(request.prefix, f"pass{own}", following)
    found = (m.group() for m in WORD.finditer(own) if own[m.end() : m.end() + 1] != "(")
    return next((name for name in found if name in unknown), "")


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Yield `table` and all tables in it, which may be a thousand deep."""
    left = [table]
    while left:
        yield (table := left.pop())
        left += reversed(table.get_children())


def _parameters(language: Language, root: Node, header: Span) -> Iterator[str]:
    """The names in the first list of parameters of a header."""
    start, stop = header
    lists = language.captures(root, header).get("parameters", ())
    first = next((node for node in lists if start <= node.start_byte and node.end_byte <= stop), None)
    if first is not None:
        yield from _names(first, {node.id for node in lists if node != first})


def _names(node: Node, lists: set[int]) -> Iterator[str]:
    """The names that `node` binds; those in `lists` are the parameters of its parameters."""
    for number, child in enumerate(node.children):
        if child.type in ("identifier", "shorthand_property_identifier_pattern"):
            if node.field_name_for_child(number) not in _ASIDE and child.text is not None:
                yield child.text.decode("utf-8", "replace")
        elif node.field_name_for_child(number) not in _ASIDE and child.id not in lists:
            yield from _names(child, lists)
