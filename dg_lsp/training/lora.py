"""LoRA for a checkpoint that is too large to be trained whole: one adapter, shared by encoder and decoder.

Encoder and decoder are different modules with the same weights. peft would give each an adapter of its own, and the two
could not be merged into one set of weights. Experts and routers are not adapted.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

ADAPTER = "adapter.safetensors"  # the file that an adapter is stored in, in bf16
SCALE = 2  # an adapter's change is so many times B A
_LAYERS = r"layers\.\d+\.(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)"
_LAYER = re.compile(r"model\.decoder\.layers\.(\d+)\.(.+)")
_ALONE = "self_conditioning"
_PARTS = rf"model\.decoder\.({_LAYERS}|{_ALONE}\.(gate|up|down)_proj)"


def add_adapter(network: Any, rank: int, seed: int) -> None:
    """Freeze `network` and add an adapter (LoRA, arXiv:2106.09685) in place; the same `seed` gives the same factors.

    It goes to the attention and the dense part of each layer, and to the self-conditioning.
    """
    from peft import LoraConfig, inject_adapter_in_model  # noqa: PLC0415  (an extra, and slow to import)

    network.requires_grad_(requires_grad=False)
    torch.manual_seed(seed)
    wanted = LoraConfig(r=rank, lora_alpha=SCALE * rank, lora_dropout=0.0, target_modules=_PARTS)
    inject_adapter_in_model(wanted, network)
    for name, weight in network.named_parameters():
        weight.requires_grad_("lora_" in name)
    for name, part in list(_adapters(network)):
        if _ALONE not in name:
            _put(network, _in_encoder(name), part)


def merge_stored(network: Any, file: Path, places: Callable[[str], Sequence[str]] | None = None) -> None:
    """Add the adapter in `file` to the weights of `network`, in place; nothing but its matrices is needed.

    The names are those that peft gives the factors A [rank, in] and B [out, rank]; the metadata's `scale` is the number
    by which B A is multiplied. places: the modules that a name means, by default the decoder's and the encoder's.
    """
    parts = dict(network.named_modules())
    with safe_open(file, "pt") as stored, torch.no_grad():
        scale = float((stored.metadata() or {}).get("scale", 1.0))
        for name in stored.keys():  # noqa: SIM118  (no mapping)
            place, found, rest = name.partition(".lora_A.")
            if not found:
                continue
            change = stored.get_tensor(f"{place}.lora_B.{rest}").float() @ stored.get_tensor(name).float()
            weights = [getattr(parts.get(p), "weight", None) for p in (places or _both)(place)]
            # Encoder and decoder may share one weight, which is changed once.
            for weight in {id(w): w for w in weights}.values():
                if weight is None or weight.shape != change.shape:
                    raise ValueError(f"{file} is an adapter of another network: {place} does not fit")
                weight.add_((scale * change).to(weight.dtype))


def _both(place: str) -> Sequence[str]:
    """The decoder's module `place`, and the encoder's module that shares its weights."""
    return (place,) if _ALONE in place else (place, _in_encoder(place))


def in_source(place: str) -> Sequence[str]:
    """The module of the causal network that an import made the decoder's module `place` of; none for other parts.

    The layers of an import lie between two further ones, so its layer 1 is the source's layer 0.
    """
    found = _LAYER.fullmatch(place)
    return (f"model.layers.{int(found[1]) - 1}.{found[2]}",) if found else ()


def _adapters(network: Any) -> Iterator[tuple[str, Any]]:
    """The adapted modules of the decoder, by name."""
    for name, module in network.model.decoder.named_modules(prefix="model.decoder"):
        if hasattr(module, "lora_A") and hasattr(module, "base_layer"):
            yield name, module


def _in_encoder(name: str) -> str:
    """The name of the encoder's module that shares its weights with the decoder's module `name`."""
    return name.replace("model.decoder.", "model.encoder.language_model.", 1)


def _put(network: Any, name: str, module: nn.Module) -> None:
    """Replace the submodule `name` of `network` by `module`."""
    parent, _, last = name.rpartition(".")
    setattr(network.get_submodule(parent), last, module)
