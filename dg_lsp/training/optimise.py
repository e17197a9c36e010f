"""The optimiser: Muon for hidden matrices and AdamW for the rest, on fp32 copies of the bf16 weights.

Knows parameters and gradients; knows no data, no loss and no clock.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn


class Optimiser:
    """Updates an fp32 master copy of each weight, and copies it back to the bf16 weight.

    Muon (Jordan 2024) orthogonalises the updates of hidden matrices, with a step size matched to AdamW's. Embeddings,
    norms, routers and the factors of an adapter take AdamW. A step never waits for the device.
    """

    def __init__(self, named: Iterable[tuple[str, nn.Parameter]], rates: tuple[float, float]) -> None:
        """named: the weights to train, by name. rates: peak learning rates of Muon and of AdamW."""
        self._weights: list[Tensor] = []
        self._masters: list[Tensor] = []
        # The parameters of the optimisers, which share the memory of the masters: each matrix of a stack, or the whole.
        self._parts: list[list[nn.Parameter]] = []
        hidden, rest = list[nn.Parameter](), list[nn.Parameter]()
        for name, weight in named:
            master, matrices = weight.detach().float().clone(), _is_hidden(name, weight)
            parts = master.view(-1, *(master.shape[-2:] if matrices else master.shape))
            self._weights.append(weight)
            self._masters.append(master)
            self._parts.append([nn.Parameter(part) for part in parts])
            (hidden if matrices else rest).extend(self._parts[-1])
        adam = torch.optim.AdamW(rest, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
        self._optimisers: dict[str, tuple[torch.optim.Optimizer, float]] = {"adam": (adam, rates[1])}
        if hidden:
            muon = torch.optim.Muon(hidden, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
            self._optimisers["muon"] = muon, rates[0]

    def step(self, share: float) -> Tensor:
        """Update the weights from their gradients at `share` of the peak rates, and clear the gradients.

        The gradients are clipped to a norm of 1. Returns their norm before that, a scalar on their device.
        """
        norm = torch.nn.utils.get_total_norm([w.grad for w in self._weights if w.grad is not None]).float()
        scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
        for weight, parts in zip(self._weights, self._parts, strict=True):
            if weight.grad is not None:
                scaled = (weight.grad.float() * scale).view(-1, *parts[0].shape)
                for part, grad in zip(parts, scaled, strict=True):
                    part.grad = grad
                weight.grad = None
        for optimiser, peak in self._optimisers.values():
            optimiser.param_groups[0]["lr"] = peak * share
            optimiser.step()
            optimiser.zero_grad()
        self._copy_back()
        return norm

    def state(self) -> dict[str, Tensor]:
        """The masters and the state of both optimisers, as named tensors for `restore`."""
        found = {f"master.{number}": master for number, master in enumerate(self._masters)}
        for name, (optimiser, _) in self._optimisers.items():
            for number, own in optimiser.state_dict()["state"].items():
                found |= {f"{name}.{number}.{key}": value for key, value in own.items()}
        return found

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Set masters, weights and optimiser state from the tensors that `state` returned."""
        for number, master in enumerate(self._masters):
            master.copy_(state[f"master.{number}"])
        self._copy_back()
        for name, (optimiser, _) in self._optimisers.items():
            found = dict[int, dict[str, Tensor]]()
            for key, value in state.items():
                if key.startswith(f"{name}."):
                    _, number_of_part, own = key.split(".")
                    found.setdefault(int(number_of_part), {})[own] = value
            optimiser.load_state_dict({**optimiser.state_dict(), "state": found})

    @torch.no_grad()
    def _copy_back(self) -> None:
        """Set the weights from their masters."""
        torch._foreach_copy_(self._weights, self._masters)


def _is_hidden(name: str, weight: Tensor) -> bool:
    """Return whether `weight` is a matrix of a hidden layer, or a stack of experts' matrices, which Muon updates."""
    others = ("embed", "lm_head", "router", "lora_")
    return weight.ndim in (2, 3) and not any(part in name for part in others)
