"""Matrices in four and eight bits (law 13): the dequantised values in fp32 say what every product must be."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaTextExperts

from benchmarks.released import build, tiny_config
from dg_lsp.model.networks import stacks
from dg_lsp.model.networks.quanta import Format, QuantizedError, quantise
from dg_lsp.model.networks.quantized import QuantizedLinear
from dg_lsp.model.networks.stacks import Float4, Many, Packed, best_way, halves_of
from tests.model.tiny import encoded, quantised_experts, tiny_network

TOLERANCE = 5e-3  # of the largest value
CASES = [(4, "cpu"), (4, "whole"), (8, "each"), (8, "whole")]


def far(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found.float() - wanted).abs().max() / wanted.abs().max())


@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize(("bits", "way"), CASES)
def test_products_are_those_of_the_dequantised_matrices(bits: int, way: str, group: int) -> None:
    torch.manual_seed(bits + group)
    quanta = quantise(torch.randn(4, 48, 256) / 16, Format(bits, group))
    packed = Packed.of(quanta, way)
    assert (packed.count, packed.outputs, packed.inputs) == (4, 48, 256)
    states, counts = torch.randn(70, 256).bfloat16(), torch.tensor([3, 0, 66, 1])
    parts = zip(states.float().split(counts.tolist()), quanta.dequantised(), strict=True)
    assert far(packed(states, counts), torch.cat([part @ matrix.T for part, matrix in parts])) < TOLERANCE


class Shapes(TorchDispatchMode):
    """Collects the numbers of rows of all products in bf16."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = set[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute as usual."""
        if func is torch.ops.aten.mm.default and args[0].dtype == torch.bfloat16:
            self.rows.add(len(args[0]))
        return func(*args, **(kwargs or {}))


def few_bits(kind: str) -> tuple[Packed | Float4, torch.Tensor]:
    """A stack of one matrix of 256 inputs whose many rows bf16 products compute, and its values in fp32."""
    if kind == "four bits":
        quanta = quantise(torch.randn(1, 128, 256) / 16, Format(4, 64))
        packed = Packed.of(quanta, "cpu")
        packed.many = Many(57)
        return packed, quanta.dequantised()[0]
    numbers = torch.randint(256, (1, 128, 128), dtype=torch.uint8)
    stack = Float4(numbers, torch.ones(1, 128, 16).to(torch.float8_e4m3fn), torch.full((1, 128), 64.0))
    return stack, halves_of(numbers)[0].float() / 64


@pytest.mark.parametrize("kind", ["four bits", "fp4"])
def test_products_have_few_sizes_however_many_rows_an_expert_gets(kind: str) -> None:
    """oneDNN would compile code for each of the sizes, some 100 in a chunk of the released shape."""
    if kind == "four bits" and not stacks.block():
        pytest.skip("this torch packs four bits in another order, so its own kernel computes all rows")
    torch.manual_seed(0)
    stack, weights = few_bits(kind)
    with Shapes() as shapes:
        for rows in (57, 63, 64, 65, 90, 128, 129, 200, 256, 257, 320, 500, 513):
            states = torch.randn(rows, 256).bfloat16()
            found = stack(states, torch.tensor([rows]))
            assert found.shape == (rows, 128)
            assert far(found, states.float() @ weights.T) < TOLERANCE
    assert shapes.rows == {64, 128, 192, 256, 384, 512}


@pytest.mark.parametrize(("bits", "most"), [(4, 0.08), (8, 0.005)])
def test_a_weight_is_rounded_to_the_nearest(bits: int, most: float) -> None:
    torch.manual_seed(0)
    weight = torch.randn(2, 8, 256)
    lost = quantise(weight, Format(bits, 32)).dequantised() - weight
    assert 0.8 * most < float(lost.pow(2).mean().sqrt()) < most


def test_a_group_of_equal_weights_stays_finite() -> None:
    weight = torch.full((1, 16, 64), 0.25)
    assert torch.allclose(quantise(weight, Format(4, 32)).dequantised(), weight, rtol=1e-2)


@pytest.mark.parametrize("made", [Format(3, 64), Format(4, 48), Format(4, 64)])
def test_an_unknown_format_is_refused_by_its_numbers(made: Format) -> None:
    with pytest.raises(QuantizedError, match="groups of"):
        quantise(torch.randn(1, 16, 96), made)


def test_a_torch_without_the_operation_is_refused_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.ops, "aten", object())
    with pytest.raises(QuantizedError, match="install torch"):
        best_way(torch.device("cpu"), Format(4, 32))


def quantised(network: Any, bits: int, way: str) -> tuple[Any, Any]:
    """`network`, of fp32, with experts and dense layers in few bits; and in fp32 with the very values of these bits."""
    format_ = Format(bits, 32)
    packed, reference = deepcopy(network), deepcopy(network)
    ours, theirs = packed.model.decoder.layers, packed.model.encoder.language_model.layers
    for number, (layer, twin) in enumerate(zip(ours, theirs, strict=True)):
        like = reference.model.decoder.layers[number]
        layer.experts = twin.experts = quantised_experts(like.experts, (format_, format_), way)
        for name in ("gate_up_proj", "down_proj"):
            weight = getattr(like.experts, name)
            weight.data = quantise(weight.data, format_).dequantised()
        for name in ("mlp.gate_proj", "self_attn.q_proj", "self_attn.o_proj"):
            quanta = quantise(like.get_submodule(name).weight.data[None], format_)
            linear = QuantizedLinear(Packed.of(quanta, way))
            for one in (layer, twin):
                one.set_submodule(name, linear)
            like.get_submodule(name).weight.data = quanta.dequantised()[0]
    return packed, reference


@pytest.mark.parametrize(("bits", "way"), CASES)
@torch.inference_mode()
def test_experts_are_those_of_transformers_with_the_same_values(
    bits: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    text = tiny_config().text_config
    text._experts_implementation = "eager"
    theirs = DiffusionGemmaTextExperts(text).float()
    for weight in (theirs.gate_up_proj, theirs.down_proj):
        weight.normal_(0, weight.shape[-1] ** -0.5)
    format_ = Format(bits, 32)
    ours = quantised_experts(theirs, (format_, format_), way)
    for weight in (theirs.gate_up_proj, theirs.down_proj):
        weight.copy_(quantise(weight, format_).dequantised())
    states = torch.randn(40, text.hidden_size).bfloat16()
    weights, index = torch.randn(40, text.num_experts).softmax(-1).topk(text.top_k_experts)
    # Two products, and a rounding between them.
    assert far(ours(states, index, weights), theirs(states.float(), index, weights)) < 2 * TOLERANCE
    # A token's result does not depend on those beside it (law 4).
    alone = ours(states[7:8], index[7:8], weights[7:8])
    together = ours(states, index, weights)
    assert torch.equal(alone[0], together[7])
    monkeypatch.setattr("dg_lsp.model.networks.quantized._AT_ONCE", 9)
    assert torch.equal(ours(states, index, weights), together)


@pytest.mark.parametrize(("bits", "way"), CASES)
@torch.inference_mode()
def test_a_quantised_network_is_as_exact_as_bf16_and_encoder_and_decoder_share_it(
    bits: int, way: str
) -> None:
    with torch.inference_mode(mode=False):
        config = tiny_config()
        # All experts take part: a hair's rounding would choose others where some do not.
        config.text_config.top_k_experts = config.text_config.num_experts
        network = tiny_network(1, config=config)
        packed, reference = quantised(network, bits, way)
    ours, theirs = packed.model.decoder.layers[0], packed.model.encoder.language_model.layers[0]
    assert ours.experts is theirs.experts and ours.mlp.gate_proj is theirs.mlp.gate_proj
    tokens, canvas = torch.arange(40).tolist(), torch.arange(16)[None]
    plain = deepcopy(reference).bfloat16()
    found, bf16, wanted = (
        network(decoder_input_ids=canvas, past_key_values=encoded(network, tokens)).logits.float()
        for network in (packed, plain, reference)
    )
    # As exact as plain products in bf16 of the very same values, which round before and after each of them as well.
    assert (found - wanted).abs().mean() < 1.2 * (bf16 - wanted).abs().mean() < 0.1 * wanted.abs().mean()


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_the_random_network_of_the_benchmark_is_tied_and_whole(bits: int) -> None:
    made = build(tiny_config(), torch.device("cpu"), bits, bits)
    assert made.lm_head.weight is made.model.decoder.embed_tokens.weight
    ours, theirs = made.model.decoder.layers[1], made.model.encoder.language_model.layers[1]
    assert [*ours.experts.parameters()] == [*theirs.experts.parameters()]
    assert not any(t.is_meta for t in (*made.parameters(), *made.buffers()))
