"""The style `chat`, for an instruction-tuned model without tokens for infilling, such as the released checkpoint.

The frame is a conversation, and the file is the beginning of the model's answer.
"""

import re
from functools import partial

from tokenizers import Tokenizer

from dg_lsp.messages import Infill
from dg_lsp.model.prompts import base
from dg_lsp.model.prompts.base import Frame, Style

_TURN, _TURN_END = "<|turn>", "<turn|>"
_THOUGHT, _THOUGHT_END = "<|channel>", "<channel|>"
SPECIAL = ("<bos>", _TURN, _TURN_END, _THOUGHT, _THOUGHT_END)

_FAR_CHARACTERS = 4_000
# The start of a top-level item: a line after an empty one that is not indented and begins with no closing bracket.
_ITEM = re.compile(r"\n[ \t]*\r?\n(?=[^\s)\]}])")


def _frame(tokenizer: Tokenizer, bos: int, request: Infill) -> Frame:
    """The frame for `request`. Its tokens change only with its context and far suffix, so the cache survives typing."""
    special, plain = partial(base.special, tokenizer), partial(base.plain, tokenizer)
    # The user's turn: the instruction, the context and the far suffix.
    fence = _fence("".join((request.prefix, request.suffix, *(piece.text for piece in request.context))))
    asked = [
        special(_TURN),
        *plain("user\n" + _instruction(request, fence)),
        special(_TURN_END),
        *plain("\n"),
    ]
    # The model's turn with an empty thought, which ends a prompt without thinking in the published chat template;
    # answers begun without it are often empty.
    answer = [
        special(_TURN),
        *plain("model\n"),
        special(_THOUGHT),
        *plain("thought\n"),
        special(_THOUGHT_END),
    ]
    # A code fence longer than any in the file; the file's text follows it.
    opening = plain(f"{fence}{request.language}\n")
    return Frame((bos, *asked, *answer, *opening), (*plain(f"\n{fence}"), special(_TURN_END)))


def far_suffix(suffix: str) -> str:
    """The part of `suffix` that begins with the next top-level item, cut to whole lines of at most 4,000 characters.

    It stays the same while one types inside the current item, and so do the cached tokens after it.
    """
    found = _ITEM.search(suffix)
    far = suffix[found.end() :] if found else ""
    if len(far) <= _FAR_CHARACTERS:
        return far
    return far[: far.rfind("\n", 0, _FAR_CHARACTERS) + 1]


def _instruction(request: Infill, fence: str) -> str:
    def block(text: str) -> str:
        return f"{fence}{request.language}\n{text.strip(chr(10))}\n{fence}"

    parts = [
        f"Write the {request.language} file that your answer begins with: one code block and no word besides."
    ]
    if request.context:
        parts.append("Other files of the project hold these definitions.")
        # A path with a line end would leave its line.
        parts += [f"`{' '.join(piece.path.split())}`:\n{block(piece.text)}" for piece in request.context]
    if far := far_suffix(request.suffix).strip("\n"):
        parts.append("Further down the file goes on as follows; do not write that again.")
        parts.append(block(far))
    return "\n\n".join(parts)


def _fence(text: str) -> str:
    """A code fence longer than every run of backticks in `text`."""
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))


def _names(tokenizer: Tokenizer) -> tuple[str, ...] | None:
    return SPECIAL if all(tokenizer.token_to_id(token) is not None for token in SPECIAL) else None


CHAT = Style("chat", _names, _frame)
