"""An engine in long use in small: documents change between fills, caches come and go, every Fill is a fresh engine's.

`benchmarks/flat.py` counts many more and watches the memory.
"""

from itertools import islice

from benchmarks.flat import ask_between_edits, some_documents
from dg_lsp.model.cache import PrefixCaches
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.settings import Settings

LIMIT = 4 << 20  # bytes, less than the prefixes of all documents take


def test_a_fill_between_edits_is_the_one_of_a_fresh_engine_and_the_caches_keep_their_limit() -> None:
    model = load_checkpoint("embedded", "cpu")
    caches = PrefixCaches(model.network.config.text_config, LIMIT)
    documents = some_documents(4)
    settings = Settings(effort="low", seed=3, prefix_bytes=2500)
    found = list(islice(ask_between_edits(model, caches, documents, settings), 12))
    assert [asked.used for asked in found if not asked.equal] == []
    assert max(asked.held for asked in found) <= LIMIT
    assert len({asked.request.session for asked in found}) >= 3
    assert 0 < len(caches) < len(documents), "caches that are never dropped prove nothing of the limit"
    assert sum(bool(asked.used.text) for asked in found) >= 2, "empty fills are equal too easily"
