"""Gaps cut out of files: rests of lines, statements and bodies, as tokens, in a file.

Knows files, grammars and the tokenizer; knows no network.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tree_sitter import Node

from benchmarks.denoiser.views import Gap
from dg_lsp.budget import BOT, within
from dg_lsp.gaps import find_gaps
from dg_lsp.reasons import OutOfTime
from dg_lsp.source.document import Document, DocumentError
from dg_lsp.source.language import has_language, language_of, load_language

ABOVE, BELOW, LONGEST = 96, 24, 32  # tokens of a prompt before and after a gap, and of a text with its end
KINDS = (("rest", 0.4), ("statement", 0.3), ("body", 0.3))
_SMALLEST, _LARGEST = 1_500, 60_000  # bytes of a file
_EACH = 4  # gaps of a file
_NEAR = 1_500  # characters around a gap
_WORD = re.compile(rb"\w+|[^\w\s]+")
_PROSE = ("comment", "string", "template", "escape", "char")
MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
PAD, END = "<|fim_pad|>", "<|endoftext|>"


class Cut(NamedTuple):
    """A gap, the tokens of its file before it and after it, and the language of the file."""

    gap: Gap
    before: list[int]
    after: list[int]
    language: str


def cut(
    folders: Sequence[Path], tokenizer: Tokenizer, count: int, seed: int, near: int = _NEAR
) -> Iterator[Cut]:
    """Yield `count` gaps of the files below `folders`, a language each as often as another one, or fewer.

    near: the characters before a gap and after it that are read as tokens.
    """
    chance = random.Random(seed)
    queues = dict[str, list[Path]]()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if has_language(path.name) and path.is_file() and _SMALLEST < path.stat().st_size < _LARGEST:
                queues.setdefault(language_of(path), []).append(path)
    for paths in queues.values():
        chance.shuffle(paths)
    made = 0
    while queues and made < count:
        for language in sorted(queues):
            if not queues[language]:
                del queues[language]
                continue
            for data, start, end in _of_file(queues[language].pop(), language, chance):
                if (one := _gap(data, start, end, tokenizer, near)) is None:
                    continue
                yield Cut(*one, language)
                made += 1
                if made == count:
                    return


def _of_file(path: Path, language: str, chance: random.Random) -> Iterator[tuple[bytes, int, int]]:
    """Yield the bytes of the file `path`, and the spans of at most _EACH gaps in it."""
    try:
        document = Document(path.as_uri(), language, 0, path.read_bytes())
        with within(BOT):
            root = load_language(language).parse(document.data).root_node
            spans = {
                "rest": _rests(root, document.data, chance),
                "statement": _statements(root, language),
                "body": [(gap.start, gap.end) for gap in find_gaps(document, 0, len(document.data))],
            }
    except (DocumentError, UnicodeDecodeError, OutOfTime, ValueError):
        return
    for _ in range(_EACH):
        kind = chance.choices([name for name, _ in KINDS], [share for _, share in KINDS])[0]
        if spans[kind]:
            yield document.data, *chance.choice(spans[kind])


def _gap(
    data: bytes, start: int, end: int, tokenizer: Tokenizer, near: int
) -> tuple[Gap, list[int], list[int]] | None:
    """Return the gap at the bytes [start, end) of `data`, and the tokens beside it; None if the prompt is short."""
    try:
        above, text, below = (part.decode() for part in (data[:start], data[start:end], data[end:]))
    except UnicodeDecodeError:
        return None
    if not text.strip():
        return None
    before, inside, after = (
        tokenizer.encode(part, add_special_tokens=False).ids for part in (above[-near:], text, below[:near])
    )
    if len(before) < ABOVE or len(after) < BELOW:
        return None
    prefix, suffix, middle = (number_of(tokenizer, mark) for mark in MARKS)
    prompt = prefix, *before[-ABOVE:], suffix, *after[:BELOW], middle
    whole = len(inside) < LONGEST
    inside = [*inside, number_of(tokenizer, END)] if whole else inside[:LONGEST]
    return Gap(prompt, tuple(inside), whole), before, after


def _rests(root: Node, data: bytes, chance: random.Random) -> list[tuple[int, int]]:
    """Return the rests of lines of code of `data` from some word on, one a line."""
    found, start = [], 0
    for line in data.splitlines(keepends=True):
        text = line.rstrip()
        words = [word.start() for word in _WORD.finditer(text) if len(text) - word.start() >= 3]
        if words:
            at = start + chance.choice(words)
            node = root.descendant_for_byte_range(at, at + 1)
            if node is not None and not any(part in node.type for part in _PROSE):
                found.append((at, start + len(text)))
        start += len(line)
    return found


def _statements(root: Node, language: str) -> list[tuple[int, int]]:
    """Return the spans of the statements of at most 300 bytes."""
    nodes = load_language(language).captures(root).get("statement", [])
    return [(n.start_byte, n.end_byte) for n in nodes if 8 <= n.end_byte - n.start_byte <= 300]


def number_of(tokenizer: Tokenizer, token: str) -> int:
    """Return the number of `token`; KeyError if there is none."""
    found = tokenizer.token_to_id(token)
    if found is None:
        raise KeyError(token)
    return found


def save(path: Path, cuts: Sequence[Cut], *, files: bool) -> None:
    """Write `cuts` to `path`; with `files` their files too."""
    gaps = [one.gap for one in cuts]
    longest = max(len(gap.text) for gap in gaps)
    tensors = {
        "prompts": torch.tensor([gap.prompt for gap in gaps], dtype=torch.int32),
        "texts": torch.tensor(
            [[*gap.text, *[-1] * (longest - len(gap.text))] for gap in gaps], dtype=torch.int32
        ),
        "whole": torch.tensor([gap.whole for gap in gaps]),
    }
    if files:
        for number, one in enumerate(cuts):
            tensors[f"before.{number}"] = torch.tensor(one.before, dtype=torch.int32)
            tensors[f"after.{number}"] = torch.tensor(one.after, dtype=torch.int32)
    save_file(tensors, path, {"languages": json.dumps([one.language for one in cuts])})


def load(path: Path) -> list[Gap]:
    """Read the gaps in `path`."""
    stored = load_file(path)
    rows = zip(stored["prompts"].tolist(), stored["texts"].tolist(), stored["whole"].tolist(), strict=True)
    return [Gap(tuple(prompt), tuple(t for t in text if t >= 0), whole) for prompt, text, whole in rows]


def load_files(path: Path) -> list[Cut]:
    """Read the gaps in `path` with their files, as `save` writes them with `files`."""
    stored = load_file(path)
    with safe_open(path, "pt") as opened:
        languages = json.loads(opened.metadata()["languages"])
    gaps = zip(load(path), languages, strict=True)
    return [
        Cut(gap, stored[f"before.{n}"].tolist(), stored[f"after.{n}"].tolist(), language)
        for n, (gap, language) in enumerate(gaps)
    ]


def errors(text: str, language: str) -> int:
    """Return how many nodes of `text` are errors, or are missing."""
    nodes, found = [load_language(language).parse(text.encode()).root_node], 0
    while nodes:
        node = nodes.pop()
        found += node.is_error or node.is_missing
        nodes += [child for child in node.children if child.has_error]
    return found
