"""Attention whose heads share keys is that of transformers, up to rounding."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from dg_lsp.model.networks import attention
from dg_lsp.model.networks.attention import grouped_attention
from dg_lsp.model.networks.eight import least_seconds


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
@pytest.mark.parametrize("slots", [1, 5, 70])
@pytest.mark.parametrize("kind", ["none", "causal", "bool", "added"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_the_result_is_that_of_transformers(
    heads: int, groups: int, slots: int, kind: str, dtype: torch.dtype
) -> None:
    dice = torch.Generator().manual_seed(heads * slots)
    sizes = ((heads, slots), (groups, 70), (groups, 70))
    query, key, value = (torch.randn(2, *size, 16, generator=dice).to(dtype) for size in sizes)
    seen = torch.ones(2, 1, slots, 70, dtype=torch.bool).tril(6)
    masks = {"bool": seen, "added": torch.where(seen, 0.0, -torch.inf).to(dtype)}
    for tiles in (False, True):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(attention, "multiplies_tiles", lambda tiles=tiles: tiles)
            ours, theirs = both(query, key, value, masks.get(kind), is_causal=kind == "causal")
        assert ours.shape == theirs.shape == (2, slots, heads, 16) and ours.dtype == theirs.dtype
        if tiles or dtype != torch.bfloat16:
            torch.testing.assert_close(ours, theirs)
            continue
        # Both are rounded, at other steps.
        added = masks[kind].double() if kind == "added" else masks.get(kind)
        _, exact = both(query.double(), key.double(), value.double(), added, is_causal=kind == "causal")
        off, own = ((found.double() - exact).abs().amax() for found in (ours, theirs))
        assert off <= 1.5 * own


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The queries, keys and values that torch's kernel gets."""
    found = list[tuple[Tensor, Tensor, Tensor]]()
    real = torch.nn.functional.scaled_dot_product_attention

    def watched(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Tensor:
        found.append((query, key, value))
        return real(query, key, value, *rest, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    return found


def attend(slots: int, tokens: int, store: Tensor) -> None:
    keys, mask = store[:, :, :tokens], torch.ones(1, 1, slots, tokens, dtype=torch.bool)
    grouped_attention(None, torch.randn(1, 8, slots, 16), keys, keys, mask)


def test_no_key_is_copied_for_a_head_that_shares_it(
    seen: list[tuple[Tensor, Tensor, Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "multiplies_tiles", lambda: True)
    store = torch.randn(1, 2, 200, 16)
    attend(3, 128, store)
    ((_, key, value),) = seen
    assert key.data_ptr() == value.data_ptr() == store.data_ptr() and key.shape == (1, 2, 128, 16)


@pytest.mark.skipif(attention.multiplies_tiles(), reason="a processor whose fused kernel is the quickest")
@torch.inference_mode()
def test_a_slot_is_read_no_slower_than_by_the_fused_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    query = torch.randn(1, 12, 1, 128).bfloat16()
    keys, mask = torch.randn(1, 2, 1024, 128).bfloat16(), torch.zeros(1, 1, 1, 1024).bfloat16()
    products = least_seconds(lambda: grouped_attention(None, query, keys, keys, mask))
    monkeypatch.setattr(attention, "multiplies_tiles", lambda: True)
    assert products < 1.5 * least_seconds(lambda: grouped_attention(None, query, keys, keys, mask))
