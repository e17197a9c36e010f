"""What stands round a file on its way to the model: nothing but a first token, or a conversation.

Two styles, chosen by the checkpoint. `raw`: the model was trained on files. `chat`: it was trained to answer (the
released checkpoint, which has no tokens for infilling); then the file is the beginning of its own answer. Knows tokens
and an Infill; knows no network.
"""

import re
from dataclasses import dataclass

from tokenizers import Tokenizer

from dg_lsp.text.messages import Infill

_TURN, _TURN_END = "<|turn>", "<turn|>"
_THOUGHT, _THOUGHT_END = "<|channel>", "<channel|>"
SPECIAL = ("<bos>", _TURN, _TURN_END, _THOUGHT, _THOUGHT_END)

_FAR_BYTES = 4_000
# A line that begins something at the top level: not indented, no closing bracket, after an empty line.
_ITEM = re.compile(r"\n[ \t]*\r?\n(?=[^\s)\]}])")


@dataclass(frozen=True, slots=True)
class Frame:
    """Tokens before the file's first one and after its last one."""

    before: tuple[int, ...]
    after: tuple[int, ...] = ()


def style_of(tokenizer: Tokenizer) -> str:
    """`chat` where the tokenizer knows turns, else `raw`."""
    return "chat" if all(tokenizer.token_to_id(token) is not None for token in SPECIAL) else "raw"


def frame_of(tokenizer: Tokenizer, style: str, bos: int, request: Infill) -> Frame:
    """The frame for `request`. The tokens before the file change only when what is far behind the gap changes.

    1. The user's turn: what is wanted, and how the file goes on after the part that is written now.
    2. The model's turn with an empty thought, as the published template ends a prompt without thinking: an answer
    begun without it is often empty.  3. A fence longer than any in the file; the file's text is what follows.
    """
    if style == "raw":
        return Frame((bos,))

    def special(token: str) -> int:
        number = tokenizer.token_to_id(token)
        assert number is not None, f"the tokenizer lacks {token}"
        return int(number)

    def plain(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    # 1.
    fence = _fence(request.prefix + request.suffix)
    asked = [
        special(_TURN),
        *plain("user\n" + _instruction(request, fence)),
        special(_TURN_END),
        *plain("\n"),
    ]
    # 2.
    answer = [
        special(_TURN),
        *plain("model\n"),
        special(_THOUGHT),
        *plain("thought\n"),
        special(_THOUGHT_END),
    ]
    # 3.
    opening = plain(f"{fence}{request.language}\n")
    return Frame((bos, *asked, *answer, *opening), (*plain(f"\n{fence}"), special(_TURN_END)))


def far_suffix(suffix: str) -> str:
    """What follows the top-level item that the gap is in, at most 4,000 characters in whole lines.

    While one types inside that item it stays the same, and with it all that is cached behind it.
    """
    found = _ITEM.search(suffix)
    far = suffix[found.end() :] if found else ""
    if len(far) <= _FAR_BYTES:
        return far
    return far[: far.rfind("\n", 0, _FAR_BYTES) + 1]


def _instruction(request: Infill, fence: str) -> str:
    far = far_suffix(request.suffix).strip("\n")
    wanted = (
        f"Write the {request.language} file that your answer begins with: one code block and no word besides."
    )
    if not far:
        return wanted
    more = "Further down the file goes on as follows; do not write that again."
    return f"{wanted} {more}\n\n{fence}{request.language}\n{far}\n{fence}"


def _fence(text: str) -> str:
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
