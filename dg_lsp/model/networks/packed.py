"""Matrices in the order in which a CPU's kernels read them. Knows torch's modules; knows no checkpoint.

A product of bfloat16 matrices puts its weights into that order each time, which takes as long as reading them three
times over: 15 of the 31 ms of a pass of six tokens through `small` (docs/research/speed-and-memory.md).
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear

# Bytes of weights up to which a network is packed: of a larger one the copy of its head would take too much memory.
MOST = 4 << 30
SHARE = 0.2  # of the bytes of a network that the copy of its head takes
_ROWS = 8  # for which the order is chosen; for one to 512 rows it is the same


def pack(network: Any) -> None:
    """Pack the linear layers of `network` where that is faster: in bfloat16 on a CPU with AVX-512.

    What they give stays the same, bit for bit. A matrix that is a layer's alone is freed; the table of tokens is needed
    as it is, too.
    """
    places: dict[Tensor, list[tuple[torch.nn.Module, str]]] = {}  # encoder and decoder share their matrices
    for parent in network.modules():
        for name, child in parent.named_children():
            if isinstance(child, Linear):
                places.setdefault(child.weight, []).append((parent, name))
    fast = all(matrix.device.type == "cpu" and matrix.dtype == torch.bfloat16 for matrix in places)
    size = sum(weight.nbytes for weight in network.parameters())
    if not fast or torch.backends.cpu.get_cpu_capability() != "AVX512" or size > MOST or not _can_pack():
        return
    while places:  # one after the other is freed
        matrix, layers = places.popitem()
        packed = torch.ops.mkldnn._reorder_linear_weight(matrix.detach(), _ROWS)
        for parent, name in layers:
            setattr(parent, name, _Packed(packed, getattr(parent, name).bias))
    # The other weights must not keep the whole file in memory, of which they are parts.
    for weight in network.parameters():
        weight.data = weight.data.clone()
    for module in network.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if not buffer.is_mkldnn:  # a buffer is a view, which would keep what it was made of
                setattr(module, name, buffer.clone())


def _can_pack() -> bool:
    """Return whether this torch has the two operations, which are private, and they still mean the same."""
    matrix = torch.eye(16, dtype=torch.bfloat16)
    try:
        packed = _Packed(torch.ops.mkldnn._reorder_linear_weight(matrix, _ROWS), None)
        return torch.equal(packed(matrix), matrix)
    except (AttributeError, TypeError, RuntimeError):
        return False


class _Packed(torch.nn.Module):
    """A linear layer with a packed matrix.

    `torch.compile` uses the same two operations (torch/_inductor/fx_passes/mkldnn_fusion.py).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("weight", weight, persistent=False)
        self.bias = bias

    def forward(self, states: Tensor) -> Tensor:
        """States [..., inputs] -> [..., outputs]."""
        read: Tensor = torch.ops.mkldnn._linear_pointwise(states, self.weight, self.bias, "none", [], "")
        return read
