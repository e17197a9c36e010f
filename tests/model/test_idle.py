"""What is left out of an imported network: it gives the same, bit for bit; other networks stay whole."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from transformers import DynamicCache

from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.networks.decoder import soft_cap
from dg_lsp.model.networks.idle import leave_out_idle_parts
from dg_lsp.training.importing import import_network
from tests.model.tiny import tiny_network
from tests.training.test_importing import SOURCES, drawn


def caches(network: Any) -> list[Any]:
    return [DynamicCache(config=network.config.text_config), PrefixCache(network.config.text_config)]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", SOURCES)
@torch.inference_mode()
def test_an_imported_network_gives_the_same_without_its_idle_parts(name: str, kind: torch.dtype) -> None:
    with torch.inference_mode(mode=False):
        whole = import_network(drawn(SOURCES[name])).to(kind).eval()
        short = deepcopy(whole)
        leave_out_idle_parts(short)
    assert sum(1 for _ in short.modules()) < 0.7 * sum(1 for _ in whole.modules())
    ids, canvas = torch.randint(3, 199, (1, 40)), torch.randint(3, 199, (1, 16))
    for old, new in zip(caches(whole), caches(short), strict=True):
        found = []
        for network, cache in ((whole, old), (short, new)):
            encoder = network.model.encoder.language_model
            states = [
                encoder(input_ids=some, past_key_values=cache).last_hidden_state
                for some in ids.split([25, 15], 1)
            ]
            found.append([*states, network(decoder_input_ids=canvas, past_key_values=cache).logits])
        assert old.get_seq_length() == new.get_seq_length() == 40
        for wanted, got in zip(*found, strict=True):
            assert torch.equal(wanted, got)


def test_nothing_but_idle_experts_is_left_out_of_another_network() -> None:
    network = tiny_network(1)
    before = [type(module) for module in network.modules()]
    leave_out_idle_parts(network)
    assert [type(module) for module in network.modules()] == before


@torch.inference_mode()
def test_the_cap_of_an_imported_network_is_left_out_and_that_of_another_stays() -> None:
    with torch.inference_mode(mode=False):
        imported = import_network(drawn(SOURCES["grouped heads, tied"]))
    for network, left_out in ((imported, True), (tiny_network(1), False)):
        raw = 40 * torch.randn(3, 5)
        cap = network.final_logit_softcapping
        torch.testing.assert_close(
            soft_cap(network, raw), torch.tanh(raw / cap) * cap, rtol=1e-4 * left_out, atol=0
        )
        assert torch.equal(soft_cap(network, raw), raw) == left_out
