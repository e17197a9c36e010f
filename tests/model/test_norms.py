"""Fused norms: the numbers of transformers' own, bit for bit, and the same weights."""

from copy import deepcopy

import pytest
import torch

from dg_lsp.model.networks.norms import FusedNorm, fuse_norms
from tests.model.tiny import encoded, tiny_network


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@torch.inference_mode()
def test_a_network_gives_the_same_with_fused_norms(kind: torch.dtype) -> None:
    with torch.inference_mode(mode=False):
        whole = tiny_network(1, kind)
        for name, weight in whole.named_parameters():
            if "norm" in name:
                weight.data.normal_(1, 0.3)
        fused = deepcopy(whole)
        fuse_norms(fused)
    assert any(isinstance(module, FusedNorm) for module in fused.modules())
    assert fused.state_dict().keys() == whole.state_dict().keys()
    first, second = (
        network(
            decoder_input_ids=torch.arange(16)[None], past_key_values=encoded(network, list(range(40)))
        ).logits
        for network in (whole, fused)
    )
    assert torch.equal(first, second)
