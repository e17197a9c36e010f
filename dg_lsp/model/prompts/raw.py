"""The style `raw`, for a network trained on files: the frame is the first token."""

from tokenizers import Tokenizer

from dg_lsp.messages import Infill
from dg_lsp.model.prompts.base import Frame, Style


def _frame(tokenizer: Tokenizer, bos: int, request: Infill) -> Frame:  # noqa: ARG001
    return Frame((bos,))


RAW = Style("raw", lambda _: (), _frame)
