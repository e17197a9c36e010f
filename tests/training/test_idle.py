"""Idle experts of an imported network are left out in training: it gives the same; other networks stay whole."""

from copy import deepcopy

import torch

from dg_lsp.training.idle import leave_out_idle_experts
from dg_lsp.training.importing import import_network
from tests.model.tiny import tiny_network
from tests.training.test_importing import SOURCES, drawn


def test_an_imported_network_gives_the_same_without_its_idle_experts() -> None:
    whole = import_network(drawn(SOURCES["grouped heads, tied"])).eval()
    short = deepcopy(whole)
    leave_out_idle_experts(short)
    assert sum(1 for _ in short.modules()) < sum(1 for _ in whole.modules())
    ids, canvas = torch.randint(3, 199, (1, 40)), torch.randint(3, 199, (1, 16))
    with torch.inference_mode():
        one, other = (network(input_ids=ids, decoder_input_ids=canvas).logits for network in (whole, short))
    assert torch.equal(one, other)


def test_experts_that_have_learned_something_stay() -> None:
    network = tiny_network(1)
    before = [type(module) for module in network.modules()]
    leave_out_idle_experts(network)
    assert [type(module) for module in network.modules()] == before
