"""Attention by plain products is that of torch's fused kernel, up to rounding."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from dg_lsp.model.networks import attention
from dg_lsp.model.networks.attention import grouped_attention


def tensors(heads: int, groups: int, slots: int, tokens: int) -> tuple[Tensor, Tensor, Tensor]:
    dice = torch.Generator().manual_seed(heads * slots)
    sizes = ((heads, slots), (groups, tokens), (groups, tokens))
    query, key, value = (torch.randn(2, *size, 16, generator=dice) for size in sizes)
    return query, key, value


def both(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, is_causal: bool
) -> tuple[Tensor, Tensor]:
    module = SimpleNamespace(num_key_value_groups=query.shape[1] // key.shape[1], is_causal=is_causal)
    options: dict[str, Any] = {"scaling": 0.3, "is_causal": is_causal}
    return (
        grouped_attention(module, query, key, value, mask, **options)[0],
        sdpa_attention_forward(module, query, key, value, mask, **options)[0],
    )


@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (9, 3), (4, 1)])
@pytest.mark.parametrize("slots", [1, 5, 64])
@pytest.mark.parametrize("kind", ["all", "bool", "added"])
def test_the_result_is_that_of_the_fused_kernel(heads: int, groups: int, slots: int, kind: str) -> None:
    query, key, value = tensors(heads, groups, slots, 70)
    seen = torch.ones(2, 1, slots, 70, dtype=torch.bool).tril(6)
    mask = {"all": None, "bool": seen, "added": torch.where(seen, 0.0, -1e9)}[kind]
    ours, theirs = both(query, key, value, mask, is_causal=False)
    assert ours.shape == theirs.shape == (2, slots, heads, 16)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["all", "bool", "added", "one mask"])
@pytest.mark.parametrize("scores", [1, 2 * 5 * 70, 4 * 5 * 70])
def test_the_result_is_the_same_bit_for_bit_however_many_heads_are_computed_together(
    kind: str, scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, key, value = (some.bfloat16() for some in tensors(4, 2, 5, 70))
    seen = torch.ones(2, 1, 5, 70, dtype=torch.bool).tril(6)
    seen[1] = seen[1].tril(3)
    masks = {"all": None, "bool": seen, "added": torch.where(seen, 0.0, -1e9), "one mask": seen[:1]}
    whole = both(query, key, value, masks[kind], is_causal=False)[0]
    monkeypatch.setattr(attention, "_CACHED", scores)
    assert torch.equal(both(query, key, value, masks[kind], is_causal=False)[0], whole)


def test_a_causal_pass_and_a_large_one_and_training_are_left_to_the_fused_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query, key, value = tensors(4, 2, 8, 8)
    ours, theirs = both(query, key, value, None, is_causal=True)
    assert torch.equal(ours, theirs)
    assert not torch.allclose(ours, both(query, key, value, None, is_causal=False)[0])
    # A single slot sees all tokens either way.
    ours, theirs = both(query[:, :, :1], key, value, None, is_causal=True)
    torch.testing.assert_close(ours, theirs)
    plain = both(query, key, value, None, is_causal=False)[0]
    monkeypatch.setattr(attention, "_SCORES", 2 * 4 * 8 * 8 - 1)
    fused = both(query, key, value, None, is_causal=False)
    assert torch.equal(*fused)
    torch.testing.assert_close(plain, fused[0])
