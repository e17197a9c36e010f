"""A frozen causal network that reads a prompt, and adapted rows of a canvas after it. Knows tensors only.

The rows see the keys and values of the prompt and, both ways, each other; the prompt's own are never changed. The row
at the place of token i gives the chances of token i + 1, as the network does, so that the prompt's last token gives
those of the canvas's first one without an adapter.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RANK, SCALE = 16, 2.0
PARTS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
MASK, DELETE = -1, -2  # in place of tokens
Pairs = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class Read:
    """Texts that were read: keys and values [texts, heads, tokens, size] by layer, and the last states, normed."""

    pairs: Pairs
    states: Tensor

    @property
    def length(self) -> int:
        """The number of tokens of each text."""
        return self.pairs[0][0].shape[2]


@dataclass(frozen=True, slots=True)
class Among:
    """A part of a vocabulary: its tokens [count], ascending, and their rows of the head [count, hidden]."""

    tokens: Tensor
    rows: Tensor


class CanvasLora(nn.Module):
    """Adapters of rank RANK for each matrix of `network`, a Qwen2 of transformers, and two rows of the vocabulary.

    mask, delete: the tokens that these rows begin as. rows: the input of a masked row and the output of `<delete>`,
    fp32 [2, hidden].
    """

    def __init__(self, network: Any, mask: int, delete: int, seed: int = 0) -> None:
        super().__init__()
        network.requires_grad_(requires_grad=False)
        self._network = (network,)  # in a tuple, so that it is no part of this module
        layers, table, head = network.model.layers, network.model.embed_tokens.weight, network.lm_head.weight
        chance = torch.Generator().manual_seed(seed)
        self.downs, self.ups = nn.ParameterDict(), nn.ParameterDict()
        for number, layer in enumerate(layers):
            for part in PARTS:
                outputs, inputs = getattr(layer.mlp if part in _MLP else layer.self_attn, part).weight.shape
                name = f"{number}_{part}"
                self.downs[name] = torch.randn(RANK, inputs, generator=chance) / math.sqrt(inputs)
                self.ups[name] = torch.zeros(outputs, RANK)
        self.rows = nn.Parameter(torch.stack([table[mask], head[delete]]).float())

    @property
    def network(self) -> Any:
        """The network of transformers."""
        return self._network[0]

    @torch.no_grad()
    def read(self, tokens: Tensor, before: Read | None = None) -> Read:
        """Read `tokens` [texts, tokens] causally after those of `before`, which stays as it is."""
        start = before.length if before else 0
        places = torch.arange(start, start + tokens.shape[1]).expand(len(tokens), -1)
        seen = torch.ones(tokens.shape[1], start + tokens.shape[1], dtype=torch.bool).tril(start)
        return self._pass(
            self.network.model.embed_tokens(tokens),
            places,
            before.pairs if before else None,
            seen,
            adapted=False,
        )

    def look(self, read: Read, known: Sequence[int], canvases: Tensor, of: Sequence[int]) -> Tensor:
        """Return the states [canvases, rows, hidden] of `canvases` [canvases, rows], tokens or MASK.

        Canvas number i comes after the first `known[i]` tokens of the text number `of[i]` of `read`.
        """
        start = torch.tensor(known)[:, None]
        count, width = canvases.shape
        table = self.network.model.embed_tokens.weight
        hidden = (canvases < 0)[..., None]
        inputs = torch.where(hidden, self.rows[0].to(table.dtype), table[canvases.clamp(min=0)])
        seen = torch.arange(read.length)[None] < start
        seen = torch.cat([seen, seen.new_ones(count, width)], 1)[:, None, None]
        texts = torch.tensor(of)
        pairs = [(key[texts], value[texts]) for key, value in read.pairs]
        places = start + torch.arange(width)
        return self._pass(inputs, places, pairs, seen.expand(-1, 1, width, -1), adapted=True).states

    def among(self, tokens: Iterable[int]) -> Among:
        """Return the part of the vocabulary that `tokens` are, for `scores`."""
        numbers = torch.tensor(sorted(set(tokens)))
        return Among(numbers, self.network.lm_head.weight[numbers])

    def scores(self, states: Tensor, among: Among | None = None) -> Tensor:
        """Return the logits in fp32 of states [rows, hidden]: [rows, tokens + 1], the last one of `<delete>`.

        among: the tokens, where they are not the whole vocabulary.
        """
        found = F.linear(states, self.network.lm_head.weight if among is None else among.rows)
        return torch.cat([found, F.linear(states, self.rows[1:].to(states.dtype))], 1).float()

    def _pass(
        self, states: Tensor, places: Tensor, before: Pairs | None, seen: Tensor, *, adapted: bool
    ) -> Read:
        """Return the pass of `states` [texts, rows, hidden] through all layers."""
        model, pairs = self.network.model, Pairs()
        turn = model.rotary_emb(states, places)
        for number, layer in enumerate(model.layers):
            normed = layer.input_layernorm(states)
            size = layer.self_attn.head_dim
            query, key, value = (
                self._product(number, part, layer.self_attn, normed, adapted=adapted)
                .unflatten(-1, (-1, size))
                .transpose(1, 2)
                for part in PARTS[:3]
            )
            query, key = _turned(query, *turn), _turned(key, *turn)
            pairs.append((key, value))
            if before is not None:
                key, value = (torch.cat(both, 2) for both in zip(before[number], (key, value), strict=True))
                pairs[-1] = pairs[-1] if adapted else (key, value)
            groups = query.shape[1] // key.shape[1]
            key, value = (part.repeat_interleave(groups, 1) for part in (key, value))
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
            mixed = mixed.transpose(1, 2).flatten(2)
            states = states + self._product(number, "o_proj", layer.self_attn, mixed, adapted=adapted)
            normed = layer.post_attention_layernorm(states)
            gate, up = (
                self._product(number, part, layer.mlp, normed, adapted=adapted) for part in PARTS[4:6]
            )
            states = states + self._product(
                number, "down_proj", layer.mlp, F.silu(gate) * up, adapted=adapted
            )
        return Read(pairs, model.norm(states))

    def _product(self, number: int, part: str, owner: Any, states: Tensor, *, adapted: bool) -> Tensor:
        """Return the product of `states` with the matrix `part` of a layer, `adapted` or not."""
        product: Tensor = getattr(owner, part)(states)
        if not adapted:
            return product
        down, up = (side[f"{number}_{part}"].to(states.dtype) for side in (self.downs, self.ups))
        return product + F.linear(F.linear(states, down), up * SCALE)


_MLP = PARTS[4:]


def _turned(heads: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Return `heads` [texts, heads, rows, size] turned by rotary embeddings."""
    first, second = heads.chunk(2, -1)
    return heads * cosines[:, None] + torch.cat([-second, first], -1) * sines[:, None]
