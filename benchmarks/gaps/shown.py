"""What is wrong with a file that a fill was put into: errors, an escape from its container, what stands twice.

Each check is made without dg_lsp's own ones, against the valid file that the hole was made in.
"""

import re
from dataclasses import dataclass

from tree_sitter import Node

from benchmarks.gaps.case import Case
from benchmarks.gaps.scenarios import stubs_of
from benchmarks.gaps.valid import is_valid
from dg_lsp.text.documents.document import Document
from dg_lsp.text.gaps.gap import Edit, apply_edit
from dg_lsp.text.reasons import OutOfTime

_COMMENT = re.compile(rb"[ \t]*(?:#[^\n]*)?\n?")


@dataclass(frozen=True, slots=True)
class Shown:
    """A fill that was offered: the whole file with it, and what is wrong with that.

    faulty: the file does not parse, or takes too long to. escapes: the container ends elsewhere than the gap. doubled:
    the fill ends with what follows it. real: it is more than a stub.
    """

    case: Case
    name: str
    data: bytes
    text: str
    faulty: bool
    escapes: bool
    doubled: bool
    real: bool


def shown(case: Case, name: str, document: Document, edit: Edit) -> Shown:
    """The checks of `edit`, made of a fill of the hole that `case` is; `name` says what was done to the fill."""
    data = apply_edit(document, edit).data
    faulty, escapes = not is_valid(case.truth.language, data), False
    if not faulty:
        try:
            escapes = _escapes(case, data, edit)
        except OutOfTime:
            faulty = True
    bare = edit.text.strip()
    return Shown(
        case=case,
        name=name,
        data=data,
        text=edit.text,
        faulty=faulty,
        escapes=escapes,
        doubled=is_doubled(edit.text, document.data[edit.end :].decode("utf-8", "replace"), case.text),
        real=bool(bare) and bare not in stubs_of(case.language),
    )


def is_doubled(text: str, behind: str, truth: str) -> bool:
    """Whether `text` ends with the rest of its line or with the next line, though the true text does not."""
    rest, _, below = behind.partition("\n")
    rest = rest.strip()
    if rest and text.rstrip().endswith(rest) and not truth.rstrip().endswith(rest):
        return not _closes_itself(text, rest)
    line = next((part.rstrip() for part in below.split("\n") if part.strip()), "")
    last, true = (part.rstrip().rpartition("\n")[2] for part in (text, truth))
    same = not rest and "\n" in text.rstrip() and bool(line) and last == line and true != line
    return same and not _closes_itself(text, line)


def _closes_itself(text: str, closers: str) -> bool:
    """Whether `closers` are brackets that close what `text` itself has opened, and so none of the file's."""
    if closers.strip(" \t)]}"):
        return False
    return all(text.count(opening) == text.count(closing) for opening, closing in ("()", "[]", "{}"))


def _escapes(case: Case, data: bytes, edit: Edit) -> bool:
    """Whether the function or block that holds the gap ends elsewhere than where the gap ends."""
    if case.kind not in ("function_body", "class_body", "block"):
        return False
    language, place = case.truth.language, case.place
    if language.style == "brace":
        # The brace that closed the body must still close the same thing.
        before = _chain(language.parse(case.truth.data).root_node, place.closes)
        return before != _chain(
            language.parse(data).root_node, place.closes + len(data) - len(case.truth.data)
        )
    # Only a function that begins where it did can be compared.
    if case.kind != "function_body":
        return False
    node = _outermost_at(language.parse(data).root_node, place.outer[0])
    end = edit.start + len(edit.text.rstrip().encode())
    if node is None:
        return True
    stop = node.end_byte
    while stop < end and (blank := _COMMENT.match(data, stop)) and blank.end() > stop:
        stop = blank.end()
    return stop < end or bool(data[end : node.end_byte].strip())


def _chain(root: Node, at: int) -> list[tuple[str, int]]:
    """What holds the token at `at`, outwards, and where each begins."""
    node = root.descendant_for_byte_range(at, at + 1)
    found = []
    while node is not None and node.parent is not None:
        node = node.parent
        found.append((node.type, node.start_byte))
    return found


def _outermost_at(root: Node, at: int) -> Node | None:
    """The function that begins at `at`."""
    node = root.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type not in ("function_definition", "decorated_definition"):
        node = node.parent
    while node is not None and node.parent is not None and node.parent.type == "decorated_definition":
        node = node.parent
    return node if node is not None and node.start_byte == at else None
