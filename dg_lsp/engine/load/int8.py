"""The network that writes token by token: on a CPU a copy whose matrices are int8.

A pass of a few tokens takes as long as the weights take to come from memory, and these are half as many bytes. A pass
of more than twelve tokens would take longer (docs/log/2026-11-23.md), so prefixes and canvases are not read by it.
"""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear

# Bytes of matrices for which a copy is made: fewer stay in the cache of the processor, more take too much memory.
_LEAST, MOST = 64 << 20, 4 << 30
SHARE = 0.5  # of the bytes of a network in bfloat16, that its copy takes
_ROWS = 128


def writer_for(network: Any) -> Any:
    """`network`, or a copy of it, where that is sooner done, whose encoder and head have int8 matrices.

    The copy shares all other tensors with `network`. Of `small` its probabilities are 0.006 nats off those of float32
    (the mean divergence), where bfloat16's are 0.0014 off (docs/log/2026-11-23.md).
    """
    encoder, head = network.model.encoder.language_model, network.lm_head
    matrices = {m.weight for m in (*encoder.modules(), head) if isinstance(m, Linear)}
    size = sum(matrix.nbytes for matrix in matrices)
    # torch has a fast kernel for bfloat16 only.
    fast = all(m.device.type == "cpu" and m.dtype == torch.bfloat16 for m in matrices)
    if not fast or not _LEAST <= size <= MOST:
        return network
    copy = deepcopy(network, {id(t): t for t in (*network.parameters(), *network.buffers())})
    for module in list(copy.model.encoder.language_model.modules()):
        for name, child in module.named_children():
            if isinstance(child, Linear):
                setattr(module, name, _Int8Linear(child))
    copy.lm_head = _Int8Linear(head)
    return copy


class _Int8Linear(torch.nn.Module):
    """The linear layer `whole` with int8 weights and a scale for each output, the largest weight over 127.

    Row-wise absmax quantisation of weights only (Dettmers et al. 2022, LLM.int8(), arXiv:2208.07339, section 2).
    """

    def __init__(self, whole: Linear) -> None:
        super().__init__()
        weight = whole.weight.detach()
        self.weight, self.scale = torch.empty_like(weight, dtype=torch.int8), weight.new_empty(len(weight))
        least = torch.finfo(weight.dtype).tiny
        # Some rows at a time: a large matrix in float32 would take four times as much memory.
        for read, own, scale in zip(
            *(t.split(_ROWS) for t in (weight, self.weight, self.scale)), strict=True
        ):
            scale.copy_(read.abs().amax(1).clamp(min=least) / 127)
            own.copy_((read / scale[:, None].float()).round().clamp(-127, 127))
        self.bias = whole.bias

    def forward(self, states: Tensor) -> Tensor:
        """States [..., inputs] -> [..., outputs]."""
        rows = states.reshape(-1, states.shape[-1])
        read: Tensor = torch.ops.aten._weight_int8pack_mm(rows, self.weight, self.scale)
        read = read.view(*states.shape[:-1], -1)
        return read if self.bias is None else read + self.bias
