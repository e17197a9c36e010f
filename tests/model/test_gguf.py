"""GGUF files with their blocks as they are (law 13): nothing is left out, logits are those of the dequantised file."""

import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf.quants import dequantize
from torch import Tensor

from dg_lsp.checkpoints import CheckpointError
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache, extend_to
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.fill import fill
from dg_lsp.model.networks import blocks, eight, gguf_causal, stacks
from dg_lsp.model.networks.base import Denoiser, Reader
from dg_lsp.model.networks.causal import keeps_text, read_network, read_tokenizer
from dg_lsp.model.networks.eight import Beside, Eight
from dg_lsp.model.networks.gguf_causal import Rows, load_gguf
from dg_lsp.model.networks.gguf_file import read_gguf
from dg_lsp.model.networks.layouts import LAYOUTS
from dg_lsp.model.networks.loading import load_network
from dg_lsp.model.networks.quantized import QuantizedLinear
from dg_lsp.model.networks.stacks import Many, Packed
from dg_lsp.model.tree import Tree
from tests.model.gguf_files import MIXED, VOCABULARY, Kind, blocks_of, q6_k, source, tensors_of, write

# Of the largest value: what a product may differ by from that of the same values in fp32, and the logits of a network
# from those of the file's own values, where bf16 alone is off by 0.7 to 1.4e-2.
SAME, OWN = 5e-3, 3e-2
CPU = torch.device("cpu")
TOKENS = torch.randint(VOCABULARY, (1, 40), generator=torch.Generator().manual_seed(5))
FEW = TOKENS[:, : eight._EXACT]  # whose states are not rounded to bytes


def far(found: Tensor, wanted: Tensor) -> float:
    return float((found.float() - wanted).abs().max() / wanted.abs().max())


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that mixes kinds of blocks as the released ones do."""
    path = tmp_path_factory.mktemp("gguf") / "net-q4_k_m.gguf"
    return write(path, tensors_of(source("qwen2"), "qwen2"))


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q4_K])
def test_blocks_in_four_bits_keep_their_numbers(kind: Kind) -> None:
    """Only scales are rounded: a weight loses a small part of its group's scale."""
    weight = np.random.default_rng(0).standard_normal((32, 512)).astype(np.float32)
    raw = torch.from_numpy(blocks_of(weight, kind))
    wanted = torch.from_numpy(dequantize(raw.numpy(), kind))
    quanta = blocks.quanta_of(kind, raw)
    lost = (quanta.dequantised()[0] - wanted).unflatten(1, (-1, 32)).abs().amax(2)
    assert bool((lost <= 0.1 * quanta.scale[0].float().abs()).all())
    groups = wanted.unflatten(1, (-1, 32))
    steps = (groups - groups[..., :1]) / quanta.scale[0].float()[..., None]
    numbers = quanta.numbers[0].unflatten(1, (-1, 32)).float()
    assert torch.equal(steps.round(), numbers - numbers[..., :1])


def test_blocks_of_six_bits_hold_what_gguf_reads_in_them() -> None:
    raw = torch.from_numpy(q6_k((64, 512), 1.0))
    assert torch.equal(
        blocks.weights_of(Kind.Q6_K, raw), torch.from_numpy(dequantize(raw.numpy(), Kind.Q6_K))
    )


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q4_K])
def test_blocks_of_four_bits_hold_what_gguf_reads_in_them(kind: Kind) -> None:
    weight = np.random.default_rng(2).standard_normal((64, 512)).astype(np.float32)
    raw = blocks_of(weight, kind)
    assert torch.equal(
        blocks.weights_of(kind, torch.from_numpy(raw)), torch.from_numpy(dequantize(raw, kind))
    )


@pytest.mark.parametrize("rows", [1, 8, 33, 300])
@pytest.mark.parametrize("kind", [Kind.Q4_K, Kind.Q8_0])
@pytest.mark.parametrize("in_bytes", [False, True])
@torch.inference_mode()
def test_products_are_those_of_the_values_in_fp32_for_few_and_many_rows(
    kind: Kind, rows: int, in_bytes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (eight, stacks):
        monkeypatch.setattr(module, "_TILE", 1 << 16)  # several tiles
    if not in_bytes:
        monkeypatch.setattr(eight, "multiplies_bytes", lambda: False)
    elif kind == Kind.Q4_K or not eight.multiplies_bytes():
        pytest.skip("a matrix in four bits, or a processor that does not multiply bytes")
    weight = np.random.default_rng(1).standard_normal((384, 512)).astype(np.float32)
    raw = torch.from_numpy(blocks_of(weight, kind))
    if kind == Kind.Q4_K:
        quanta = blocks.quanta_of(kind, raw)
        made: Packed | Eight = Packed.of(quanta)
        values = quanta.dequantised()[0]
    else:
        made = Eight.of([blocks.weights_of(kind, raw)], (384, 512), CPU)
        values = made.dequantised()
        assert far(values, blocks.weights_of(kind, raw)) < 0.5 / 127 + 2**-9
    states = torch.randn(rows, 512, generator=torch.Generator().manual_seed(0)).bfloat16()
    states[:, 3] = 60.0  # as some are in every network
    for many in (made.many, Many(1, 1), Many(1, 1, torch.float32)):
        made.many = many if stacks.block() else made.many
        assert far(made.product(states), states.float() @ values.T) < SAME


@pytest.mark.skipif(not eight.multiplies_bytes(), reason="a processor that does not multiply bytes")
@torch.inference_mode()
def test_many_states_have_eight_bits_unless_few_of_them_are_large() -> None:
    weight = torch.randn(384, 512, generator=torch.Generator().manual_seed(1))
    made = Eight.of([weight], (384, 512), CPU)
    states = torch.randn(eight._EXACT + 8, 512, generator=torch.Generator().manual_seed(0)).bfloat16()
    states[::2, 3] = 100.0
    unit = states.float().abs().amax(1, keepdim=True) / 127
    wanted = (states / unit).round() * unit
    wanted[::2] = states[::2].float()
    values = made.dequantised()
    assert far(made.product(states), wanted @ values.T) < SAME
    # Each row is rounded by itself, whatever else is read with it.
    assert torch.equal(made.product(states)[:-1], made.product(states[:-1]))
    few = states[: eight._EXACT]
    assert far(made.product(few), few.float() @ values.T) < SAME


def test_without_fast_products_in_bf16_many_rows_are_multiplied_in_fp32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False, raising=False)
    for kind, dtype in (("AVX2", torch.float32), ("AVX512", torch.float32), ("SVE256", torch.bfloat16)):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda kind=kind: kind)
        made = stacks.many_rows.__wrapped__()
        assert made.dtype == dtype
        assert (made == Many()) == (dtype == torch.bfloat16), (
            "where nothing was measured torch's kernels stay"
        )
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True, raising=False)
    assert stacks.many_rows.__wrapped__().dtype == torch.bfloat16


@torch.inference_mode()
def test_states_of_zeros_and_of_any_size_are_multiplied() -> None:
    made = Eight.of([torch.randn(64, 128)], (64, 128), CPU)
    for size in (0.0, 1e-20, 1e20):
        states = (torch.ones(2, 128) * size).bfloat16()
        wanted = states.float() @ made.dequantised().T
        assert bool(((made.product(states).float() - wanted).abs() <= 1e-2 * wanted.abs().max()).all())


def same_values(opened: Any, bits: int) -> Any:
    """transformers' network in fp32 with the values that matrices in few bits hold."""
    reference = read_network(opened.path, dtype=torch.float32).eval()
    for stored in opened.tensors.values():
        name, _, own = gguf_causal._name_of(stored.name, LAYOUTS["qwen2"].parts).rpartition(".")
        if own != "weight" or not isinstance(reference.get_submodule(name), torch.nn.Linear):
            continue
        raw = opened.read(stored)
        if bits != 8 and blocks.has_four_bits(stored.kind):
            values = blocks.quanta_of(stored.kind, raw).dequantised()[0]
        else:
            values = Eight.of([blocks.weights_of(stored.kind, raw)], stored.shape, CPU).dequantised()
        reference.get_submodule(name).weight.data = values
    return reference


@pytest.mark.parametrize("bits", [16, 8])
@torch.inference_mode()
def test_the_logits_are_as_near_to_those_of_the_same_values_in_fp32_as_bf16_is(
    mixed: Path, bits: int
) -> None:
    opened = read_gguf(mixed)
    network = load_gguf(opened, CPU, torch.float32, bits)
    kinds = {name: type(m.matrix) for name, m in network.named_modules() if isinstance(m, QuantizedLinear)}
    # Neighbours in as many bits are joined: of seven matrices four are left, or five.
    assert len(kinds) == (4 if bits == 8 else 5) * 2 + 1
    assert {*kinds.values()} - {Beside} == ({Eight} if bits == 8 else {Packed, Eight})
    reference = same_values(opened, bits)
    wanted = reference(input_ids=FEW).logits
    few = network.trial(TOKENS[:, :5])
    found, in_bf16 = network.trial(FEW), reference.bfloat16()(input_ids=FEW).logits
    assert far(found, wanted) < 2 * far(in_bf16, wanted)
    assert far(few, wanted[:, :5]) < 2 * far(in_bf16, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kinds", [MIXED, {}], ids=["mixed", "one kind"])
@pytest.mark.parametrize("least", [Kind.Q4_K, Kind.Q4_0, Kind.Q5_0, Kind.Q8_0, Kind.F16])
@pytest.mark.parametrize("architecture", ["qwen2", "llama"])
@torch.inference_mode()
def test_the_logits_are_those_that_transformers_computes_of_the_file(
    tmp_path: Path, architecture: str, least: Kind, kinds: Any, dtype: torch.dtype
) -> None:
    """Dequantised by gguf, with the names, the order of outputs and the configuration that transformers finds."""
    tensors = tensors_of(source(architecture), architecture)
    if kinds == {}:
        tensors.pop("output.weight")  # the table of tokens is the head
    path = write(tmp_path / "net.gguf", tensors, architecture, kinds, least)
    wanted = read_network(path, dtype=torch.float32).eval()(input_ids=FEW).logits
    assert far(load_gguf(read_gguf(path), CPU, dtype).trial(FEW), wanted) < OWN


@torch.inference_mode()
def test_biases_of_a_llama_are_turned_as_its_matrices_are(tmp_path: Path) -> None:
    network = source("llama biased")
    path = write(tmp_path / "net.gguf", tensors_of(network, "llama"), "llama", {}, Kind.F32)
    found = load_gguf(read_gguf(path), CPU, torch.float32).trial(TOKENS)
    torch.testing.assert_close(found, network(input_ids=TOKENS).logits, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_the_factors_of_rotary_embeddings_are_applied(tmp_path: Path) -> None:
    tensors = tensors_of(source("llama"), "llama")
    tensors["rope_freqs.weight"] = np.full(32, 4, np.float32)
    path = write(tmp_path / "net.gguf", tensors, "llama", {}, Kind.F32)
    network = load_gguf(read_gguf(path), CPU, torch.float32).network
    theirs = source("llama")
    theirs.model.rotary_emb.inv_freq = theirs.model.rotary_emb.inv_freq / 4
    torch.testing.assert_close(
        network(input_ids=TOKENS).logits, theirs(input_ids=TOKENS).logits, rtol=1e-4, atol=1e-4
    )


@torch.inference_mode()
def test_a_prefix_in_a_cache_gives_the_logits_of_a_whole_pass(mixed: Path) -> None:
    """Law 3; a row read alone goes through another kernel than many together."""
    network = load_network(mixed, "cpu")
    tokens = TOKENS[0].tolist()
    cache = PrefixCache(network.text_config)
    for length in (30, 10, 40):
        list(extend_to(network, cache, tokens[:length]))
        tree = Tree(network, cache, length - 1)
        (states,) = tree.read([[tokens[length - 1]]])
        wanted = network.trial(TOKENS[:, :length])[0, -1].float()
        assert far(network.logits(states)[0], wanted) < OWN


def test_nothing_is_held_that_the_file_has_not_and_the_table_stays_there(mixed: Path) -> None:
    network = load_network(mixed, "cpu")
    assert isinstance(network.network.model.embed_tokens, Rows)
    held = sum(t.nbytes for t in (*network.parameters(), *network.buffers()))
    assert held < 1.1 * mixed.stat().st_size
    tokens = torch.tensor([[3, 0, 271], [3, 3, 8]])
    stored = read_gguf(mixed).tensors["token_embd.weight"]
    whole = blocks.weights_of(stored.kind, read_gguf(mixed).read(stored))
    found = network.network.model.embed_tokens(tokens)  # in fp32 where a CPU has no fast bf16
    assert torch.equal(found, whole[tokens].to(found.dtype))


def test_a_gguf_file_is_a_checkpoint_that_fills_and_its_header_is_read_once(
    mixed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[Path]()
    for module in ("loading", "causal"):
        where = f"dg_lsp.model.networks.{module}.read_gguf"
        monkeypatch.setattr(where, lambda path: read.append(path) or read_gguf(path))  # type: ignore[func-returns-value]
    model = load_checkpoint(str(mixed), "cpu")
    assert read == [mixed]
    assert isinstance(model.network, Reader) and not isinstance(model.network, Denoiser)
    assert model.bos == model.eos == model.tokenizer.token_to_id("<|endoftext|>")
    fim = [model.tokenizer.token_to_id(f"<|fim_{part}|>") for part in ("prefix", "middle", "suffix")]
    assert model.special.issuperset(fim) and None not in fim
    *_, last = fill(
        model, PrefixCache(model.network.text_config), Infill("x = ", "\n", "python", "rest_of_line")
    )
    assert isinstance(last, Fill)


def test_the_tokenizer_of_the_header_keeps_text_and_knows_special_tokens(mixed: Path) -> None:
    tokenizer = read_tokenizer(mixed)
    assert keeps_text(tokenizer)
    for text in ("ab\tc\r\n  é😀\x00\ufffd", "<|fim_prefix|>x", "\u2028\u00a0 1234 _x__"):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert len(tokenizer.encode("<|fim_middle|>").ids) == 1
    tokenizer.encode_special_tokens = True  # as a checkpoint sets it: in a file it is plain text
    assert len(tokenizer.encode("<|fim_middle|>").ids) > 1


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda tensors: tensors.pop(name)


def renamed(tensors: dict[str, Any]) -> None:
    tensors["blk.1.ffn_upper.weight"] = tensors.pop("blk.1.ffn_up.weight")


def misshapen(tensors: dict[str, Any]) -> None:
    tensors["blk.1.ffn_up.weight"] = tensors["blk.1.ffn_up.weight"][:256]


def not_finite(tensors: dict[str, Any]) -> None:
    tensors["blk.0.attn_norm.weight"] = np.full_like(tensors["blk.0.attn_norm.weight"], np.nan)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (without("blk.1.ffn_down.weight"), "1 tensors are missing, such as blk.1.ffn_down.weight"),
        (without("blk.0.attn_k.bias"), "such as blk.0.attn_k.bias"),
        (without("token_embd.weight"), "token_embd.weight is missing"),
        (renamed, "blk.1.ffn_upper.weight is no tensor of this network"),
        (misshapen, r"blk.1.ffn_up.weight has the shape \(256, 256\) instead of \(512, 256\)"),
        (not_finite, "blk.0.attn_norm.weight holds numbers that are not finite"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused_by_name(tmp_path: Path, change: Any, why: str) -> None:
    tensors = tensors_of(source("qwen2"), "qwen2")
    change(tensors)
    with pytest.raises(CheckpointError, match=why):
        load_network(write(tmp_path / "net.gguf", tensors), "cpu")


@pytest.mark.parametrize(
    "name", [f"{part}.weight" for part in ("blk.1.ffn_up", "blk.0.ffn_down", "token_embd", "blk.1.attn_k")]
)
@pytest.mark.parametrize(("scale", "why"), [(0.0, "scales of zero"), (np.nan, "scales that are not finite")])
def test_a_scale_that_is_lost_is_refused_by_the_tensors_name(
    mixed: Path, tmp_path: Path, name: str, scale: float, why: str
) -> None:
    stored = read_gguf(mixed).tensors[name]
    data = bytearray(mixed.read_bytes())
    at = stored.at + stored.row_bytes + blocks._LAYOUTS[stored.kind].scales[0]  # in the second row
    data[at : at + 2] = struct.pack("<e", scale)
    path = tmp_path / "net.gguf"
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=f"{name} holds {why}"):
        load_network(path, "cpu")


def test_a_group_of_zeros_has_a_scale_of_zero_and_is_no_fault() -> None:
    for kind in (Kind.Q4_0, Kind.Q5_0, Kind.Q8_0):
        blocks.check(kind, torch.from_numpy(blocks_of(np.zeros((2, 64), np.float32), kind)))


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.2, 0.6, 0.99])
def test_a_file_that_is_cut_short_is_refused(mixed: Path, tmp_path: Path, share: float) -> None:
    whole = mixed.read_bytes()
    path = tmp_path / "net.gguf"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(CheckpointError, match=r"cut short|no GGUF file"):
        load_network(path, "cpu")


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ({"expert_count": 8}, "qwen2.expert_count, which is not understood"),
        ({"attention.key_length": 32}, "heads of 32"),
        ({"rope.dimension_count": 32}, "qwen2.rope.dimension_count 32 instead of 64"),
    ],
)
def test_a_header_that_says_something_else_is_refused(tmp_path: Path, entries: Any, why: str) -> None:
    path = write(tmp_path / "net.gguf", tensors_of(source("qwen2"), "qwen2"), entries=entries)
    with pytest.raises(CheckpointError, match=why):
        load_network(path, "cpu")


def test_an_architecture_that_is_not_run_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "net.gguf", {}, "toy")
    with pytest.raises(CheckpointError, match="holds a 'toy' model, and only"):
        load_network(path, "cpu")


@torch.inference_mode()
def test_without_torchs_operation_matrices_are_in_bf16_and_the_reason_is_logged(
    mixed: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = load_network(mixed, "cpu").trial(TOKENS).float()
    monkeypatch.setattr(torch.ops, "aten", object())
    network = load_network(mixed, "cpu")
    assert "install torch" in caplog.text
    assert not any(isinstance(module, QuantizedLinear) for module in network.modules())
    assert far(network.trial(TOKENS), wanted) < OWN


@pytest.mark.skipif(not eight.multiplies_bytes(), reason="this CPU does not multiply bytes")
@pytest.mark.parametrize("outputs", [64, 128, 192, 256])
def test_few_rows_of_a_matrix_with_few_outputs_take_no_longer_than_many(outputs: int) -> None:
    matrix = Eight.of([torch.randn(outputs, 896)], (outputs, 896), CPU)
    states = torch.randn(8, 896).bfloat16()
    taken = [eight.least_seconds(partial(matrix.product, states[:count])) for count in (1, 2, 8)]
    assert max(taken[:2]) < 8 * taken[2]
    for count in (1, 2):
        torch.testing.assert_close(matrix.product(states[:count]), matrix.product(states)[:count])


@pytest.mark.skipif(not eight.multiplies_bytes(), reason="this CPU does not multiply bytes")
def test_a_product_of_bytes_is_not_computed_number_by_number() -> None:
    weights, states = torch.randn(896, 896), torch.randn(8, 896).bfloat16()
    matrix, plain = Eight.of([weights], (896, 896), CPU), weights.bfloat16()
    in_bytes = eight.least_seconds(lambda: matrix.product(states))
    assert in_bytes < 100 * eight.least_seconds(lambda: torch.nn.functional.linear(states, plain))


def test_bytes_are_not_multiplied_where_it_takes_longer_than_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_number(states: torch.Tensor, packed: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
        return (states.float() - 128) @ packed.float().T

    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True, raising=False)
    monkeypatch.setattr(torch.ops.onednn, "qlinear_prepack", lambda numbers, _: numbers, raising=False)
    monkeypatch.setattr(eight, "_product_of_bytes", by_number)
    assert not eight.multiplies_bytes.__wrapped__()
