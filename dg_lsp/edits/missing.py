"""Missing imports: the import of a name that new text uses, that nothing defines, and whose import is known.

It is known from the other open documents, or from the standard library of the language.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from tree_sitter import Node

from dg_lsp.budget import check
from dg_lsp.edits.imports import names_bound
from dg_lsp.edits.places import IMPORTS, WORDS, Place, Source, is_import, source_of, statement_of
from dg_lsp.edits.sharing import may_share
from dg_lsp.edits.spans import spans_of
from dg_lsp.gaps import Edit
from dg_lsp.source.bursts import Burst, Bursts
from dg_lsp.source.document import Document
from dg_lsp.source.language import Language
from dg_lsp.source.lexer import line_end, line_start
from dg_lsp.source.names import around, whole

# Names of one edit that are looked at.
_MOST = 20
_WHOLE_NAME = re.compile(rb"\w+\Z")


@dataclass(frozen=True, slots=True)
class _Statement:
    """The bytes [start, end) of a document that import something: a statement, or the line of one in a list.

    module, names: what it imports names from, and where their list is; empty if it is of another form.
    """

    start: int
    end: int
    text: bytes
    module: bytes = b""
    names: tuple[int, int] = (0, 0)

    def entry(self, word: bytes) -> bytes:
        """Return the entry of its list that binds `word`; empty without one."""
        entries = (entry.strip() for entry in self.text[slice(*self.names)].split(b","))
        return next((entry for entry in entries if WORDS.findall(entry)[-1:] == [word]), b"")


def missing_places(
    source: Source, bursts: Bursts, cursor: int, others: Sequence[Document]
) -> Iterator[Place]:
    """Yield the edits that import what the newest of `bursts` uses and nothing defines, if their import is known.

    1. Find such names.  2. Look for the import of each in the `others`, then in the standard library.  3. Put it among
    the imports of the document, in their order, or into the list of its module.
    """
    if not source.language.imports.member and not source.language.imports.whole:
        return
    own, document = _statements(source), source.document
    # 1. A text without imports may be a part of a file; whether it is takes longest to see.
    if not own or any(b"*" in one.text[slice(*one.names)] for one in own):
        return
    undefined = [*_undefined(source, bursts.recent[-1], cursor)]
    if not undefined or _is_part(source, own, bursts):
        return
    alike = [one for one in others if may_share(source, one, b"")]
    cells = [one.data for one in others if _is_cell(one, document)]
    for word, is_receiver in undefined:
        check()
        if any(whole(word).search(text) for text in (*cells, *(one.text for one in own))):
            continue
        # 2.
        near = [source_of(one) for one in alike if word in one.data]
        found = (
            _imported(source, word, near)
            or _own(source, word, near, alike)
            or _standard(source.language, word, is_receiver=is_receiver)
        )
        # A module is no function.
        plain, _, _ = source.language.imports.whole.encode().partition(b"$module")
        is_module = bool(plain) and found.startswith(plain)
        if found and (is_receiver or not is_module) and not _is_beside(source, found):
            # 3.
            yield document, _put_in(source, own, _like(found, own[0].text))


def _is_beside(source: Source, text: bytes) -> bool:
    """Return whether the statement `text` imports from the package of `source`, whose names need none."""
    found = _form(source.language).fullmatch(text)
    packages = [node.text or b"" for node in source.root.children if node.type == "package_declaration"]
    return found is not None and any(whole(found["module"]).search(package) for package in packages)


def _like(text: bytes, other: bytes) -> bytes:
    """Return the statement `text` with the quotes of the `other` one, and with a semicolon if that has one."""
    quotes = [sign for sign in (b'"', b"'") if sign in other and sign not in text]
    if quotes:
        text = re.sub(rb"[\"']", lambda _: quotes[0], text)
    return text.removesuffix(b";") + (b";" if other.endswith(b";") else b"")


def _is_cell(one: Document, document: Document) -> bool:
    """Return whether `one` is a cell of the notebook that `document` is a cell of."""
    return "#" in document.uri and one.uri.partition("#")[0] == document.uri.partition("#")[0]


def _is_part(source: Source, own: list[_Statement], bursts: Bursts) -> bool:
    """Return whether the text uses a module elsewhere that it does not import: then it is a part of a file."""
    data, names = source.document.data, _receivers(source.language)
    spans = [span for burst in bursts.recent for span in burst.spans(data)]
    for match in names.finditer(data):
        check()
        if any(span.now <= match.start() <= span.stop for span in spans):
            continue
        if any(whole(match[1]).search(one.text) for one in own):
            continue
        name = source.name_at(*match.span(1))
        if (
            name is not None
            and name.role == "variable"
            and all(n.scope is None for n in source.names(match[1]))
        ):
            return True
    return False


@cache
def _modules(language: Language) -> dict[bytes, str]:
    """Return the modules of the standard library that are imported whole, by their names."""
    return {
        name: module for module in language.imports.modules for name in _WHOLE_NAME.findall(module.encode())
    }


@cache
def _receivers(language: Language) -> re.Pattern[bytes]:
    """Return the pattern of a module of the standard library, the first group, of which a member is used."""
    names = b"|".join(_modules(language))
    return re.compile(rb"(?<![\w.])(%b)\.\w" % names) if names else re.compile(rb"(?!)()")


def _undefined(source: Source, burst: Burst, cursor: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the names of the new text of `burst` that nothing defines, and whether a member of each is used."""
    data, seen, known = source.document.data, set[bytes](), _needs_none(source.language)
    for span in spans_of(burst, data):
        if any(
            n.has_error for n in source.root.children if n.start_byte < span.stop and span.now < n.end_byte
        ):
            return
        for match in WORDS.finditer(data, span.now, span.stop):
            check()
            word = match[0]
            # A name at the cursor may be half of one.
            if word in seen or word in known or match.end() == cursor:
                continue
            name = source.name_at(*match.span())
            if name is None or name.role not in ("variable", "type") or name.scope is not None:
                continue
            if word.startswith(b"__") or any(_is_elsewhere(node) for node in around(name.node)):
                continue
            seen.add(word)
            if len(seen) > _MOST:
                return
            names = source.names(word)
            if names and all(one.scope is None and not is_import(one.node) for one in names):
                yield word, data[match.end() : match.end() + 1] == b"."


@cache
def _needs_none(language: Language) -> frozenset[bytes]:
    """Return the names that every file may use; among those that are completed are some that need an import."""
    return frozenset(word.encode() for word in language.own_words) - {*language.imports.members}


def _is_elsewhere(node: Node) -> bool:
    """Return whether the names in `node` are no uses: it is an import, or an attribute of Rust, which has its own."""
    return node.type.startswith(IMPORTS) or node.type.endswith("attribute_item")


def _statements(source: Source) -> list[_Statement]:
    """Return the imports at the level of the file, in order."""
    nodes = [node for node in source.root.children if node.type.startswith(IMPORTS)]
    return [_read(source, node) for statement in nodes for node in _lines_of(statement)]


def _lines_of(statement: Node) -> list[Node]:
    """Return `statement`, or the lines of the list that it has in brackets, as in Go."""
    lists = [node for node in statement.children if node.type.endswith("_spec_list")]
    return [node for one in lists for node in one.named_children if node.type.endswith("_spec")] or [
        statement
    ]


def _read(source: Source, node: Node) -> _Statement:
    """Return the statement at `node`."""
    text = node.text or b""
    found = _form(source.language).fullmatch(text)
    if found is None:
        return _Statement(node.start_byte, node.end_byte, text)
    return _Statement(node.start_byte, node.end_byte, text, found["module"], found.span("names"))


@cache
def _form(language: Language) -> re.Pattern[bytes]:
    """Return the pattern of a statement that imports names from a module; it has the groups `module` and `names`."""
    imports = language.imports
    if not imports.member:
        return re.compile(rb"(?!)(?P<module>)(?P<names>)")
    text = re.escape(imports.member.removesuffix(";")).replace(r"\ ", r"\s+").replace(r"\$", "$")
    opening, closing = (
        (f"[{re.escape(sign)}]?" for sign in imports.brackets) if imports.brackets else ("", "")
    )
    names = rf"{opening}\s*(?P<names>[\w$\s,*]+?),?\s*{closing}"
    text = text.replace("$module", r"(?P<module>[^\s;]+)").replace("$names", names)
    return re.compile(rf"{text};?".encode())


def _imported(source: Source, word: bytes, others: Sequence[Source]) -> bytes:
    """Return the statement that imports `word` alone as most of the `others` do; empty if they differ, or none does."""
    found, here = Counter[bytes](), posixpath.dirname(source.document.uri)
    for other in others:
        folders = here, posixpath.dirname(other.document.uri)
        known = [one for one in _statements(other) if not _begins_there(other, one.module)]
        found.update(filter(None, (_alone(one, word, source.language, folders) for one in known)))
    return _most(found)


def _begins_there(source: Source, module: bytes) -> bool:
    """Return whether the path `module` begins with a name that `source` defines, as a module of Rust."""
    names = source.names(_root(module)) if module[:1].isalpha() else ()
    return any(name.scope is not None and not is_import(name.place) for name in names)


def _most(found: Counter[bytes]) -> bytes:
    """Return what was found most often; empty if nothing was, or two as often."""
    first, second = [*found.most_common(2), (b"", 0), (b"", 0)][:2]
    return first[0] if first[1] > second[1] else b""


def _own(source: Source, word: bytes, near: Sequence[Source], others: Sequence[Document]) -> bytes:
    """Return the statement that imports `word` from the one of `near` that defines it; empty without a known path.

    The path is known if `source` or one of the `others` imports from that file.
    """
    found, here = Counter[bytes](), posixpath.dirname(source.document.uri)
    definers = [other for other in near if _defines(other, word)]
    if len(definers) != 1:
        return b""
    target = posixpath.splitext(definers[0].document.uri)[0]
    for one in (source, *map(source_of, others)):
        there = posixpath.dirname(one.document.uri)
        modules = {statement.module for statement in _statements(one) if statement.module}
        found.update(filter(None, (_moved(m, here, there) for m in modules if _is_path_of(m, there, target))))
    module = _most(found)
    return _member(source.language, module, word) if module else b""


def _defines(source: Source, word: bytes) -> bool:
    """Return whether `source` defines `word` for other files."""
    for name in source.names(word):
        if name.scope is not None and name.scope.parent is None and not is_import(name.place):
            statement, exported = statement_of(name.place), source.language.imports.exported
            is_default = (statement.text or b"").startswith(b"export default")
            return not exported or (statement.type == exported and not is_default)
    return False


def _is_path_of(module: bytes, folder: str, target: str) -> bool:
    """Return whether `module`, in a file of `folder`, is the file `target`, a URI without its suffix."""
    text = module.strip(b"\"'").decode("utf-8", "replace")
    if text.startswith(("./", "../")):
        return posixpath.normpath(posixpath.join(folder, text)) == posixpath.normpath(target)
    if text.startswith("."):
        up = len(text) - len(text.lstrip("."))
        below = "/".join([folder, *[".."] * (up - 1), *text.lstrip(".").split(".")])
        return posixpath.normpath(below) == posixpath.normpath(target)
    return target.endswith("/" + text.replace(".", "/"))


def _alone(one: _Statement, word: bytes, language: Language, near: tuple[str, str]) -> bytes:
    """Return the statement that imports `word` alone as `one` does in the second folder of `near`, for the first one.

    Empty if it does not import it, or by a path that is valid there only.
    """
    if one.module:
        entry, module = one.entry(word), _moved(one.module, *near)
        if not entry or not module:
            return b""
        return _member(language, module, entry)
    bound = names_bound(one.text)
    if b"\n" in one.text or [name for name, _ in bound] != [word]:
        return b""
    path = re.search(rb"""["'](\.[^"']*)["']""", one.text)
    if path is None:
        return one.text
    moved = _moved(path[0], *near)
    return one.text.replace(path[0], moved) if moved else b""


def _member(language: Language, module: bytes, entry: bytes) -> bytes:
    """Return the statement that imports `entry` from `module`."""
    return language.imports.member.encode().replace(b"$module", module).replace(b"$names", entry)


def _moved(module: bytes, here: str, there: str) -> bytes:
    """Return the path `module`, written in the folder `there`, as it is in `here`; empty if it is valid there only."""
    if here == there:
        return module
    quote, path = module[:1], module[1:-1].decode("utf-8", "replace")
    if quote in (b'"', b"'") and path.startswith("."):
        moved = posixpath.relpath(posixpath.join(there, path), here)
        return quote + (moved if moved.startswith(".") else f"./{moved}").encode() + quote
    return b"" if module.startswith((b".", b"super::", b"self::")) else module


def _standard(language: Language, word: bytes, *, is_receiver: bool) -> bytes:
    """Return the statement that imports `word` from the standard library; empty if that has none of this name.

    is_receiver: a member of it is used, so that it may be a module.
    """
    imports = language.imports
    if word in imports.members:
        return _member(language, imports.members[word].encode(), word)
    module = _modules(language).get(word, "")
    return imports.whole.replace("$module", module).encode() if module and is_receiver else b""


def _put_in(source: Source, own: list[_Statement], text: bytes) -> Edit:
    """Return the edit that adds the statement `text`: to the list of its module, or as a line."""
    found = _form(source.language).fullmatch(text)
    if found is not None:
        imports = source.language.imports
        for one in own:
            is_list = imports.bare or (imports.brackets and imports.brackets[0].encode() in one.text)
            if one.module == found["module"] and is_list:
                return _listed(one, found["names"])
    return _line(source, own, text)


def _listed(one: _Statement, entry: bytes) -> Edit:
    """Return the edit that adds `entry` to the list of `one`, in the order that the list has."""
    begin, end = one.names
    entries = [*re.finditer(rb"[^,\s](?:[^,]*[^,\s])?", one.text[begin:end])]
    words = [found[0] for found in entries]
    place = len(words)
    if words == sorted(words):
        place = next((n for n, other in enumerate(words) if other > entry), place)
    between = b", "
    if len(entries) > 1:
        between = one.text[begin + entries[0].end() : begin + entries[1].start()]
    elif b"\n" in one.text[:begin]:
        line = line_start(one.text, begin)
        between = b",\n" + one.text[line:begin]
    if place == len(words):
        at, text = begin + entries[-1].end(), between + entry
    else:
        at, text = begin + entries[place].start(), entry + between
    return Edit(one.start + at, one.start + at, text.decode("utf-8", "replace"))


def _line(source: Source, own: list[_Statement], text: bytes) -> Edit:
    """Return the edit that adds the statement `text` as a line, in the order of those like it."""
    data, is_standard = source.document.data, _is_standard(source.language, text)
    newline = b"\r\n" if b"\r\n" in data[: line_end(data, 0) + 2] else b"\n"
    groups = _groups(data, own)
    alike = [g for g in groups if any(_is_standard(source.language, o.text) == is_standard for o in g)]
    if not alike:
        # The standard library comes first, in a group of its own.
        beside = own[0] if is_standard else own[-1]
        indent = data[line_start(data, beside.start) : beside.start]
        added = _in_form(text, beside)
        if is_standard:
            return Edit(beside.start, beside.start, (added + newline * 2 + indent).decode("utf-8", "replace"))
        at = line_end(data, beside.end)
        return Edit(at, at, (newline * 2 + indent + added).decode("utf-8", "replace"))
    mine = _module_of(text)
    group = max(
        alike, key=lambda g: max(len(posixpath.commonprefix([mine, _module_of(one.text)])) for one in g)
    )
    text = _in_form(text, group[0])
    place = next((n for n in map(partial(_place, group, text), _ORDERS) if n is not None), len(group))
    beside = group[min(place, len(group) - 1)]
    indent = data[line_start(data, beside.start) : beside.start]
    if place == len(group):
        at, added = line_end(data, beside.end), newline + indent + text
    else:
        at, added = beside.start, text + newline + indent
    return Edit(at, at, added.decode("utf-8", "replace"))


def _in_form(text: bytes, beside: _Statement) -> bytes:
    """Return `text` as it is written beside a statement: with `import`, if it is the line of a list without one."""
    return b"import " + text if text.startswith(b'"') and beside.text.startswith(b"import") else text


def _is_standard(language: Language, text: bytes) -> bool:
    """Return whether the statement `text` imports from the standard library, by the first part of its module."""
    return _root(_module_of(text)) in _roots(language)


@cache
def _roots(language: Language) -> frozenset[bytes]:
    """Return the first parts of the modules of the standard library."""
    modules = {*language.imports.modules, *language.imports.members.values()}
    return frozenset(_root(module.encode()) for module in modules)


def _root(module: bytes) -> bytes:
    """Return the first part of `module`."""
    return WORDS.findall(module)[0] if WORDS.findall(module) and not module.startswith(b".") else b""


def _place(group: list[_Statement], text: bytes, order: Callable[[bytes], tuple[bytes, ...]]) -> int | None:
    """Return where `text` belongs in `group` by `order`; None if the group has another one."""
    known = [order(one.text) for one in group]
    if known != sorted(known):
        return None
    return next((number for number, other in enumerate(known) if other > order(text)), len(group))


def _module_of(text: bytes) -> bytes:
    """Return the module of the statement `text`, and what follows it, for an order."""
    path = re.search(rb"""["']([^"']+)["']""", text)
    return (path[1] if path else re.sub(rb"^(?:import|from|use)\s+|[{};*]", b"", text).strip()).lower()


def _groups(data: bytes, own: list[_Statement]) -> list[list[_Statement]]:
    """Return `own` by groups of lines that follow each other."""
    groups = list[list[_Statement]]()
    for one in own:
        between = data[groups[-1][-1].end : one.start] if groups else b""
        if groups and not between.strip(b"; \t\r\n") and between.count(b"\n") == 1:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


# Orders of imports: `import a` before `from a import b`, by modules, by letters.
_ORDERS: tuple[Callable[[bytes], tuple[bytes, ...]], ...] = (
    lambda text: (b"1" if text.startswith(b"from ") else b"0", _module_of(text)),
    lambda text: (_module_of(text),),
    lambda text: (text.lower(),),
)
