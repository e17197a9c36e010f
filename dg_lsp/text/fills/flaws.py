"""Flaws of a body that can be shown: unused parameters, and names that nothing defines.

A body with flaws comes behind those with fewer. In Python the names are looked up by the interpreter's own scopes. Of
115 bodies of code that was in no training 5 seem to name what nothing defines, since the prefix is cut; of those that
`small` wrote in their place, 23 do (docs/research/bodies.md).
"""

import builtins
import symtable
from collections.abc import Callable, Iterator
from functools import cache

from dg_lsp.text.checked import CHECKED
from dg_lsp.text.fills.signature import signature_of
from dg_lsp.text.languages.language import WORD
from dg_lsp.text.messages import Infill

# Names that each module has, and `__class__`, which each method has.
_ALWAYS = frozenset(dir(builtins)) | {"__class__", "__file__", "__name__", "__path__"}
# What symtable calls functions that have no name.
_NAMELESS = {"lambda", "listcomp", "setcomp", "dictcomp", "genexpr"}


def flaws_of(request: Infill) -> Callable[[str], int]:
    """A function that counts the flaws of a body for the gap of `request`; 0 for all other kinds of gap."""
    signature = signature_of(request)
    names = request.kind == "function_body" and request.language == "python"

    @cache
    def flaws(body: str) -> int:
        return signature.flaws(body) + (len(undefined(request.prefix, body, request.suffix)) if names else 0)

    return flaws


def undefined(prefix: str, body: str, suffix: str) -> frozenset[str]:
    """The names that a Python function uses and nothing defines, once `body` follows `prefix`.

    Of `suffix`, which may be cut anywhere, all words count as defined of lines that are not indented. Empty where the
    file does not parse or imports names that it does not tell.
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


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """`table` and all tables in it."""
    yield table
    for inner in table.get_children():
        yield from _tables(inner)
