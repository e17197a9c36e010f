"""Expectations of a function's header: the body uses the parameters, and does more than call itself.

A body that does otherwise is no error, and is shown where there is no better one. Of 300 functions of code that was in
no training 20 leave a parameter unnamed and none only calls itself; of the bodies that `small` wrote for them 53 and 11
do (docs/research/bodies.md).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from dg_lsp.text.fills.site import site_of
from dg_lsp.text.languages.language import WORD, Language
from dg_lsp.text.messages import Infill
from dg_lsp.text.syntax.bodies import unwritten
from dg_lsp.text.syntax.lexer import Span

# What is read in a header and is no parameter: types, defaults, annotations.
_ASIDE = {"type", "value", "default_value", "right", "returns"}


@dataclass(frozen=True, slots=True)
class Signature:
    """The name and the parameters of the function whose body is missing, as far as its body is to name them.

    name: empty where the file has another function of that name. parameters: without those that the rest of the body
    names, that begin with an underscore, or that the language itself gives (`self`).
    """

    name: str = ""
    parameters: frozenset[str] = frozenset()

    def flaws(self, body: str) -> int:
        """Count the parameters that `body` does not name, and 1 more for one line that calls the function itself."""
        unnamed = self.parameters.difference(WORD.findall(body))
        return len(unnamed) + (len(body.split("\n")) == 1 and self._calls_itself(body))

    def _calls_itself(self, line: str) -> bool:
        own = rf"(?<![\w.>:])(?:(?:self|cls|this|Self)(?:\.|->|::))?{re.escape(self.name)}\("
        return bool(self.name and re.search(own, line))


def signature_of(request: Infill) -> Signature:
    """The Signature of the function whose body is to be written; an empty one for all other gaps."""
    if request.kind != "function_body":
        return Signature()
    site = site_of(request)
    found = unwritten(site.language, site.before, site.after)
    if found is None:
        return Signature()
    own, name = found.own, found.own.header.last_name
    behind = len(found.data) - len(site.after)
    rest = found.data[own.opens : len(site.before)] + found.data[behind : own.stop]
    known = site.language.own_words.union(WORD.findall(rest.decode("utf-8", "replace")))
    parameters = _parameters(site.language, found.root, (own.header.define, own.header.opens))
    return Signature(
        "" if any(one != own and one.header.last_name == name for one in found.functions) else name,
        frozenset(one for one in parameters if one not in known and not one.startswith("_")),
    )


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
