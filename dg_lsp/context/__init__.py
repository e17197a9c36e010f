"""Context: the part of a file and of other files that is sent to the engine."""

from dg_lsp.context import prompt
from dg_lsp.context.definitions import context_of
from dg_lsp.context.index import LARGEST, Index, Other, Stamp, family_of, read_other
from dg_lsp.context.prompt import shortened
from dg_lsp.context.recent import Edited, recent_edits
from dg_lsp.context.retrieve import Search, search
from dg_lsp.context.secrets import has_secret, is_key
from dg_lsp.context.similar import similar
from dg_lsp.context.unimported import unimported

__all__ = [
    "LARGEST",
    "Edited",
    "Index",
    "Other",
    "Search",
    "Stamp",
    "context_of",
    "family_of",
    "has_secret",
    "is_key",
    "prompt",
    "read_other",
    "recent_edits",
    "search",
    "shortened",
    "similar",
    "unimported",
]
