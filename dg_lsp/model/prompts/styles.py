"""The table of prompt styles. A new one is a file and an entry here."""

from tokenizers import Tokenizer

from dg_lsp.messages import Infill
from dg_lsp.model.prompts.base import Frame, Style
from dg_lsp.model.prompts.chat import CHAT
from dg_lsp.model.prompts.fim import FIM
from dg_lsp.model.prompts.raw import RAW

# By name; where a checkpoint names none, the last one that its tokenizer has the tokens of is meant.
STYLES: dict[str, Style] = {style.name: style for style in (RAW, FIM, CHAT)}


def style_of(tokenizer: Tokenizer) -> str:
    """The style that a checkpoint with this tokenizer is meant for, if it names none."""
    return [style.name for style in STYLES.values() if style.fits(tokenizer)][-1]


def frame_of(tokenizer: Tokenizer, style: str, bos: int, request: Infill) -> Frame:
    """The frame for `request` in a style; bos: the first token of a text."""
    return STYLES[style].frame(tokenizer, bos, request)
