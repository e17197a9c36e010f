"""The style `fim`, for a network that was trained on fill-in-the-middle: it sees both sides of a gap.

The text above the gap's item, pieces of other files, the text after the gap, and then the item up to the gap as the
beginning of the middle; of a span only its line. While one types in an item, a token is only ever added after those
that are cached; where a piece changes, the text above the item stays cached.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from dg_lsp.checkpoints import read_json
from dg_lsp.messages import Infill
from dg_lsp.model.prompts.base import Frame, Style, Weights, plain, special
from dg_lsp.source.document import LINE_END, last_line
from dg_lsp.source.language import load_language

# Characters after a gap that the network sees, about 200 tokens; and tokens before it. A CPU reads 100 to 300 tokens
# a second.
_SUFFIX, _READS = 700, 1024
# Tokens of pieces of other files at most, a third of the tokens read of the file itself.
_PIECES = 320
# The start of a top-level item: a line after an empty one that is not indented and begins with no closing bracket.
_ITEM = re.compile(r"(?:\n|\r\n?)[ \t]*(?:\n|\r\n?)(?=[^\s)\]}])")
# The weights of the judge for the style, whatever the network (docs/research/candidates-and-judge.md).
_JUDGE = Path(__file__).with_name("fim.json")


@dataclass(frozen=True, slots=True)
class Family:
    """The special tokens of networks of one family.

    prefix, suffix, middle: the tokens in front of the text above a gap, of the text after it, and of its own; without
    a middle the suffix comes first, and the prefix and the gap's text are one. ends: tokens that end a gap's text.
    mark: a further token by which the family is known. begins: whether the first token of a text comes first.
    """

    prefix: str
    suffix: str
    middle: str
    ends: tuple[str, ...]
    mark: str = ""
    begins: bool = False

    @property
    def needed(self) -> tuple[str, ...]:
        """The tokens by which a tokenizer of the family is known."""
        return tuple(filter(None, (self.prefix, self.suffix, self.middle, self.mark)))


# A tokenizer is of the first family of which it has the needed tokens. Read in the family's own pages: CodeGemma
# (ai.google.dev/gemma/docs/codegemma/prompt-structure) and Codestral (mistralai/cookbook, concept-deep-dive, whose
# prefix begins with a blank that SentencePiece adds and we do not). Read as others quote them: Qwen2.5-Coder's and
# DeepSeek-Coder's READMEs and StarCoder2's report (arXiv:2402.19173); Granite in the lists of tokens of llama.cpp.
FAMILIES = {
    "Qwen2.5-Coder, Qwen3-Coder": Family(
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
        ("<|endoftext|>", "<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<|im_end|>"),
        "<|file_sep|>",
    ),
    "CodeGemma": Family(
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
        ("<|file_separator|>", "<eos>"),
        mark="<|file_separator|>",
        begins=True,
    ),
    "Granite 4": Family(
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
        ("<|end_of_text|>", "<|fim_pad|>", "<|filename|>", "<|reponame|>"),
        mark="<|reponame|>",
    ),
    "StarCoder2": Family(
        "<fim_prefix>",
        "<fim_suffix>",
        "<fim_middle>",
        ("<|endoftext|>", "<file_sep>", "<fim_pad>", "<repo_name>"),
        "<file_sep>",
    ),
    "StarCoder, Granite": Family(
        "<fim_prefix>", "<fim_suffix>", "<fim_middle>", ("<|endoftext|>", "<|end_of_text|>", "<fim_pad>")
    ),
    "DeepSeek-Coder": Family(
        "<｜fim▁begin｜>",
        "<｜fim▁hole｜>",
        "<｜fim▁end｜>",
        ("<｜end▁of▁sentence｜>", "<|EOT|>"),
        begins=True,
    ),
    "Codestral": Family("[PREFIX]", "[SUFFIX]", "", ("</s>",), begins=True),
}


def family_of(tokenizer: Tokenizer) -> Family | None:
    """Return the family of FAMILIES that `tokenizer` belongs to; None if it belongs to none."""
    known = (f for f in FAMILIES.values() if all(tokenizer.token_to_id(t) is not None for t in f.needed))
    return next(known, None)


def near_suffix(suffix: str, most: int = _SUFFIX) -> str:
    """The beginning of `suffix`, at most `most` characters: whole lines, or a part of the first if it is very long."""
    if len(suffix) <= most:
        return suffix
    end = max(suffix.rfind("\n", 0, most), suffix.rfind("\r", 0, most)) + 1
    return suffix[: end or most]


def item_start(prefix: str) -> int:
    """Return where the top-level item that `prefix` ends in begins; 0 if it has no other item before it.

    The line that `prefix` ends in begins no item yet: with its first letter all would be read again.
    """
    starts = [found.end() for found in _ITEM.finditer(prefix, 0, last_line(prefix))]
    return starts[-1] if starts else 0


def _names(tokenizer: Tokenizer) -> tuple[str, ...] | None:
    family = family_of(tokenizer)
    if family is None:
        return None
    names = dict.fromkeys((*family.needed, *family.ends))
    return tuple(name for name in names if tokenizer.token_to_id(name) is not None)


def _ends(tokenizer: Tokenizer) -> tuple[int, ...]:
    family = family_of(tokenizer)
    found = (tokenizer.token_to_id(name) for name in (family.ends if family else ()))
    return tuple(number for number in found if number is not None)


def _frame(tokenizer: Tokenizer, bos: int, request: Infill) -> Frame:
    """Return the frame for `request`. Its tokens change with the context, the items above and the near suffix only."""
    family = family_of(tokenizer)
    assert family is not None, "the tokenizer has no tokens for fill-in-the-middle"
    opening = (bos,) if family.begins else ()
    prefix, pieces = special(tokenizer, family.prefix), _pieces(tokenizer, request)
    after = (special(tokenizer, family.suffix), *plain(tokenizer, near_suffix(request.suffix)))
    if not family.middle:
        return Frame((*opening, *after, prefix, *pieces))
    between = (*pieces, *after, special(tokenizer, family.middle))
    # The end of a span is known by the text after it only, and found more often from a middle that begins with it.
    start = last_line if request.kind == "span" else item_start
    return Frame((*opening, prefix), cut=start(request.prefix), between=between)


def _pieces(tokenizer: Tokenizer, request: Infill) -> tuple[int, ...]:
    """Return the tokens of the pieces of other files, each below its path in a comment; () if there are none.

    At most _PIECES tokens, the last pieces first: a cold prompt has to be read in time. A piece that shares half of its
    lines with the text around the gap is left out, since the network would repeat it.
    """
    if not request.context:
        return ()
    language, around = load_language(request.language, request.macros), _lines_around(request)
    found, room = list[tuple[int, ...]](), _PIECES
    for piece in reversed(request.context):
        lines = _lines(piece.text)
        if 2 * len(lines & around) >= len(lines):
            continue
        path = language.commented(" ".join(piece.path.split()))
        tokens = plain(tokenizer, f"{path}\n{piece.text.strip(chr(10))}\n\n")
        if len(tokens) <= room:
            found.append(tokens)
            room -= len(tokens)
    return tuple(token for tokens in reversed(found) for token in tokens)


def _lines_around(request: Infill) -> frozenset[str]:
    """The lines in sight around the gap but for its own, which is being written."""
    above, after = (LINE_END.split(text) for text in (request.prefix, near_suffix(request.suffix)))
    return _lines("\n".join((*above[:-1], *after[1:])))


def _lines(text: str) -> frozenset[str]:
    """The lines of `text` that are not blank, without the white space around them."""
    return frozenset(filter(None, map(str.strip, LINE_END.split(text))))


def _judge() -> Weights:
    return read_json(_JUDGE) if _JUDGE.exists() else {}


FIM = Style("fim", _names, _frame, _ends, _READS, _judge)
