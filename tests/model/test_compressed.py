"""Checkpoints of compressed-tensors, made here in the names and layouts of the published ones: INT8 and NVFP4."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.released import tiny_config
from dg_lsp.checkpoints import CheckpointError
from dg_lsp.cli.main import main
from dg_lsp.engine import memory
from dg_lsp.messages import Fill, Infill
from dg_lsp.model.cache import PrefixCache
from dg_lsp.model.checkpoint import load_checkpoint
from dg_lsp.model.fill import fill
from dg_lsp.model.networks.base import Denoiser, Reader
from dg_lsp.model.networks.compressed import load_compressed
from dg_lsp.model.networks.stacks import Float4, Packed
from tests.model.tiny import (
    byte_tokenizer,
    canvas_logits,
    save_checkpoint,
    scaled_network,
    tiny_network,
    write_manifest,
)

TOLERANCE = 3e-2  # of the largest logit, everything but the kernel's products in bf16 as well
LEVELS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
PRODUCT = 5e-3  # of the largest output of one product
EXPERT = "model.decoder.layers.1.experts.3"
Tensors = dict[str, Tensor]
Written = tuple[
    Tensors, Tensor
]  # the tensors of a matrix by their suffixes, and the weights that they stand for


def int8(weight: Tensor, group: int = 0) -> Written:
    """`weight` in eight bits with a scale for each output or group; bf16 scales, as bf16 checkpoints give them."""
    parts = weight.unflatten(1, (-1, group or weight.shape[1]))
    scale = (parts.abs().amax(2) / 127).bfloat16()
    numbers = (parts / scale.float()[..., None]).round().clamp(-127, 127)
    stored = {"weight": numbers.flatten(1).to(torch.int8), "weight_scale": scale}
    return stored, (numbers * scale.float()[..., None]).flatten(1)


def nvfp4(weight: Tensor) -> Written:
    """`weight` in four bits: w = fp4 x scale / global, the first of two numbers in the low bits."""
    whole = 448 * 6 / weight.abs().amax()
    parts = weight.unflatten(1, (-1, 16))
    scale = (parts.abs().amax(2) / 6 * whole).to(torch.float8_e4m3fn)
    wanted = parts * whole / scale.float().clamp(min=2**-9)[..., None]
    code = (wanted.abs()[..., None] - LEVELS).abs().argmin(-1)
    dequantised = LEVELS[code] * wanted.sign() * scale.float()[..., None] / whole
    code = (code + 8 * (wanted < 0)).flatten(1).to(torch.uint8)
    stored = {
        "weight_packed": code[:, ::2] | code[:, 1::2] << 4,
        "weight_scale": scale,
        "weight_global_scale": whole.view(1),
        "input_global_scale": torch.tensor(300.0),
    }
    return stored, dequantised.flatten(1)


FORMATS: dict[str, tuple[str, Callable[[Tensor], Written], dict[str, Any]]] = {
    "int8": (
        "int-quantized",
        int8,
        {"num_bits": 8, "type": "int", "strategy": "channel", "group_size": None},
    ),
    "int8 grouped": (
        "int-quantized",
        lambda weight: int8(weight, 32),
        {"num_bits": 8, "type": "int", "strategy": "group", "group_size": 32},
    ),
    "nvfp4": (
        "nvfp4-pack-quantized",
        nvfp4,
        {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
    ),
}


def unchanged(_: dict[str, Any]) -> None:
    pass


def write(
    path: Path, network: Any, form: str, change: Callable[[Tensors], object] = unchanged,
    describe: Callable[[dict[str, Any]], object] = unchanged,
) -> Path:  # fmt: skip
    """Write `network` to `path` in the format `form`, and let it hold what the written matrices stand for."""
    format_, matrix, weights = FORMATS[form]
    tensors: Tensors = {}

    def put(name: str, weight: Tensor) -> Tensor:
        stored, dequantised = matrix(weight.detach().float())
        tensors.update({f"{name}.{suffix}": tensor for suffix, tensor in stored.items()})
        return dequantised

    for name, value in network.named_parameters(remove_duplicate=False):
        if not name.startswith("model.decoder."):
            continue
        parent = name.rpartition(".")[0]
        if parent.endswith(".experts"):
            parts = ["gate_proj", "up_proj"] if name.endswith("gate_up_proj") else ["down_proj"]
            for number, expert in enumerate(value.data):
                pieces = zip(parts, expert.chunk(len(parts)), strict=True)
                made = [put(f"{parent}.{number}.{part}", piece) for part, piece in pieces]
                value.data[number] = torch.cat(made)
        elif ".mlp." in name or ("self_attn" in name and "proj" in name and form != "nvfp4"):
            value.data = put(parent, value)
        else:
            tensors[name] = value.detach().bfloat16()
            value.data = tensors[name].float()
    tensors |= {name: b.clone() for name, b in network.named_buffers() if name.endswith("layer_scalar")}
    tensors["model.encoder.vision_tower.patch.weight"] = torch.zeros(2)
    change(tensors)
    path.mkdir(exist_ok=True)
    config = network.config.to_dict()
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": format_,
        "quantization_status": "compressed",
        "kv_cache_scheme": None,
        "ignore": ["lm_head"],
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {"symmetric": True, "dynamic": False, "actorder": None, **weights},
                "input_activations": {"num_bits": 8, "dynamic": True},
                "output_activations": None,
            }
        },
    }
    describe(config["quantization_config"])
    (path / "config.json").write_text(json.dumps(config, default=str))
    names = sorted(tensors)  # an expert's tensors are in both files
    for number in (0, 1):
        some = {name: tensors[name].contiguous() for name in names[number::2]}
        save_file(some, path / f"model-{number}.safetensors")
    return path


def far(found: Tensor, wanted: Tensor) -> float:
    return float((found.float() - wanted).abs().max() / wanted.abs().max())


@pytest.fixture
def network() -> Any:
    return scaled_network(tiny_config())


@pytest.mark.parametrize("form", FORMATS)
@torch.inference_mode()
def test_the_logits_are_those_of_the_dequantised_file(tmp_path: Path, network: Any, form: str) -> None:
    with torch.inference_mode(mode=False), torch.no_grad():
        path = write(tmp_path / "net", network, form)
    wanted = canvas_logits(network)
    made = load_compressed(path, "cpu", 16)
    experts = made.model.decoder.layers[1].experts
    assert experts is made.model.encoder.language_model.layers[1].experts
    assert isinstance(experts.down, Float4 if form == "nvfp4" else Packed)
    # The experts alone, as rounding makes the routers of so small a network choose others.
    theirs = network.model.decoder.layers[1].experts
    states = torch.randn(24, 128, generator=torch.Generator().manual_seed(5)).bfloat16()
    product = experts.gate_up(states.repeat(8, 1), torch.full((8,), 24))
    exact = torch.einsum("ti,eoi->eto", states.float(), theirs.gate_up_proj).flatten(0, 1)
    assert far(product, exact) < PRODUCT
    # Two products one after another round the states between them too, as bf16 products of the same values do.
    routed = torch.arange(48).view(24, 2) % 8, torch.full((24, 2), 0.5)
    exact, in_bf16 = theirs(states.float(), *routed), deepcopy(theirs).bfloat16()(states, *routed)
    assert far(experts(states, *routed), exact) < 1.3 * far(in_bf16, exact)
    if form != "nvfp4":
        assert torch.equal(experts.gate_up.dequantised(), theirs.gate_up_proj.bfloat16().transpose(1, 2))
    in_bf16 = canvas_logits(deepcopy(network).bfloat16())
    assert far(canvas_logits(made), wanted) < max(2 * far(in_bf16, wanted), TOLERANCE)


@pytest.mark.parametrize("form", FORMATS)
@torch.inference_mode()
def test_each_weight_is_that_of_the_formula(tmp_path: Path, network: Any, form: str) -> None:
    with torch.inference_mode(mode=False), torch.no_grad():
        path = write(tmp_path / "net", network, form)
    made = load_compressed(path, "cpu", 16)
    for ours, theirs in zip(made.model.decoder.layers, network.model.decoder.layers, strict=True):
        for stack, weights in (
            (ours.experts.gate_up, theirs.experts.gate_up_proj),
            (ours.experts.down, theirs.experts.down_proj),
        ):
            count, inputs = len(weights), weights.shape[2]
            # Each input alone through each matrix; the products have one term and are rounded to bf16 twice at most.
            alone = torch.eye(inputs, dtype=torch.bfloat16).repeat(count, 1)
            for stack.way in ("each", "whole"):
                found = stack(alone, torch.full((count,), inputs)).view(count, inputs, -1).transpose(1, 2)
                assert torch.allclose(found.float(), weights, rtol=2**-7, atol=1e-9)
        assert torch.equal(ours.mlp.up_proj.weight, theirs.mlp.up_proj.weight.bfloat16())


def test_it_is_not_packed(tmp_path: Path, network: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with torch.no_grad():
        path = write(tmp_path / "net", network, "nvfp4")
    assert main(["pack", str(path), "--out", str(tmp_path / "made")]) == 2
    assert "holds quantised weights, which are not packed; name" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["int8", "nvfp4"])
def test_a_folder_is_a_checkpoint_that_denoises_in_the_memory_that_was_counted(
    tmp_path: Path, form: str
) -> None:
    save_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    network = tiny_network(1, config=tiny_config(byte_tokenizer().get_vocab_size()))
    with torch.no_grad():
        write(tmp_path, network, form)
    write_manifest(tmp_path)
    for bits in (16, 8, 4):
        loaded = load_compressed(tmp_path, "cpu", bits)
        held = sum(t.nbytes for t in (*loaded.parameters(), *loaded.buffers()))
        assert held <= memory.needed(tmp_path, "cuda", bits=bits) / memory.MARGIN < 1.25 * held
        model = load_checkpoint(str(tmp_path), "cpu", bits=bits)
        down = model.network.model.decoder.layers[0].experts.down
        assert isinstance(down, Float4) if form == "nvfp4" and bits > 4 else down.format.bits == min(bits, 8)
    assert isinstance(model.network, Reader) and isinstance(model.network, Denoiser)
    *_, last = fill(
        model, PrefixCache(model.network.text_config), Infill("x = ", "\n", "python", "rest_of_line")
    )
    assert isinstance(last, Fill)


def changed(name: str, change: Callable[[Tensor], Tensor | None]) -> Callable[[Tensors], None]:
    """The tensor called `name` through `change`; without it where that gives None."""

    def apply(tensors: Tensors) -> None:
        if (new := change(tensors.pop(name))) is not None:
            tensors[name] = new

    return apply


def renamed(name: str, other: str) -> Callable[[Tensors], None]:
    def apply(tensors: Tensors) -> None:
        tensors[other] = tensors.pop(name)

    return apply


def gone(_: Tensor) -> None:
    return None


def nan(tensor: Tensor) -> Tensor:
    return torch.full(tensor.shape, torch.nan).to(tensor.dtype)


def zero(tensor: Tensor) -> Tensor:
    return torch.zeros(tensor.shape).to(tensor.dtype)


def cut(tensor: Tensor) -> Tensor:
    return tensor[:-1]


DOWN, GATE, ATTENTION = (
    f"{EXPERT}.down_proj",
    f"{EXPERT}.gate_proj",
    "model.decoder.layers.0.self_attn.q_proj",
)
DENSE = "model.decoder.layers.0.mlp.up_proj"


@pytest.mark.parametrize(
    ("form", "change", "why"),
    [
        ("int8", changed(f"{GATE}.weight", gone), f"{GATE}.weight is missing"),
        ("int8", changed(f"{DOWN}.weight_scale", gone), f"{DOWN}.weight_scale is missing"),
        ("int8", changed(f"{ATTENTION}.weight_scale", gone), f"{ATTENTION}.weight_scale is missing"),
        ("int8", changed(f"{DOWN}.weight", cut), f"{DOWN}.weight is torch.int8 .* instead of"),
        ("int8", changed(f"{DOWN}.weight", lambda t: t.bfloat16()), f"{DOWN}.weight is torch.bfloat16"),
        ("int8", changed(f"{DOWN}.weight_scale", nan), f"{DOWN}.weight_scale holds scales"),
        ("int8 grouped", changed(f"{GATE}.weight_scale", zero), f"{GATE}.weight_scale holds scales"),
        ("int8", renamed(f"{GATE}.weight", f"{EXPERT}.gate.weight"), f"{GATE}.weight is missing"),
        ("int8", lambda t: t.update({f"{GATE}.weight_g_idx": torch.ones(2)}), f"{GATE}.weight_g_idx is no tensor"),
        ("int8", lambda t: t.pop("model.decoder.norm.weight"), "model.decoder.norm.weight"),
        ("nvfp4", changed(f"{GATE}.weight_packed", gone), f"{GATE}.weight_packed is missing"),
        ("nvfp4", changed(f"{DENSE}.weight_packed", gone), f"{DENSE}.weight_packed is missing"),
        ("nvfp4", changed(f"{DENSE}.weight_scale", gone), f"{DENSE}.weight_scale is missing"),
        ("nvfp4", changed(f"{GATE}.weight_packed", cut), f"{GATE}.weight_packed is torch.uint8"),
        ("nvfp4", changed(f"{GATE}.weight_global_scale", gone), f"{GATE}.weight_global_scale is missing"),
        ("nvfp4", changed(f"{GATE}.weight_global_scale", zero), f"{GATE}.weight_global_scale is not one"),
        ("nvfp4", changed(f"{DENSE}.weight_global_scale", nan), f"{DENSE}.weight_global_scale is not one"),
        ("nvfp4", changed(f"{DOWN}.input_global_scale", nan), f"{DOWN}.input_global_scale is not one"),
        ("nvfp4", changed(f"{DOWN}.weight_scale", zero), f"{DOWN}.weight_scale holds scales"),
        ("nvfp4", changed(f"{DOWN}.weight_scale", nan), f"{DOWN}.weight_scale holds scales"),
        ("nvfp4", changed(f"{DOWN}.weight_scale", lambda t: t.float()), f"{DOWN}.weight_scale is torch.float32"),
        ("nvfp4", lambda t: t.update({f"{DOWN[:-14]}.8.up_proj.weight": torch.ones(2)}), "is no tensor"),
    ],
)  # fmt: skip
def test_a_tensor_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, network: Any, form: str, change: Callable[[Tensors], object], why: str
) -> None:
    with torch.no_grad():
        path = write(tmp_path / "net", network, form, change)
    with pytest.raises(CheckpointError, match=why):
        load_compressed(path, "cpu", 16)


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, network: Any) -> None:
    with torch.no_grad():
        path = write(tmp_path / "net", network, "int8")
    file = path / "model-1.safetensors"
    file.write_bytes(file.read_bytes()[:-64])
    assert memory.needed(path, "cuda") > file.stat().st_size
    with pytest.raises(CheckpointError, match="cut short or damaged"):
        load_compressed(path, "cpu", 16)


def of_weights(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda entry: entry["config_groups"]["group_0"]["weights"].update(changes)


@pytest.mark.parametrize(
    ("describe", "why"),
    [
        (lambda entry: entry.update(quant_method="modelopt"), "quant_method modelopt"),
        (lambda entry: entry.update(format="float-quantized"), "format float-quantized"),
        (lambda entry: entry.update(kv_cache_scheme={"num_bits": 8}), "kv_cache_scheme"),
        (lambda entry: entry.update(quantization_status="frozen"), "quantization_status frozen"),
        (lambda entry: entry.update(transform_config={"u": {}}), "transform_config"),
        (lambda entry: entry["config_groups"].update(group_1={}), "other than one group"),
        (of_weights(num_bits=4), "num_bits 4"),
        (of_weights(symmetric=False), "symmetric False"),
        (of_weights(strategy="block"), "strategy block"),
        (of_weights(actorder="group"), "actorder group"),
        (of_weights(strategy="group", group_size=48), "group_size 48"),
        (of_weights(strategy="group", group_size=0), "group_size 0"),
    ],
)
def test_a_scheme_that_is_not_understood_is_refused_with_the_fix(
    tmp_path: Path, network: Any, describe: Any, why: str
) -> None:
    with torch.no_grad():
        path = write(tmp_path / "net", network, "int8", describe=describe)
    with pytest.raises(CheckpointError, match=f"{why}.* is not understood; get its bf16 version"):
        load_compressed(path, "cpu", 16)
