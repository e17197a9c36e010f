"""The optimiser: Muon for hidden matrices and AdamW for the rest, on fp32 copies of the bf16 weights.

Knows parameters and gradients; knows no data, no loss and no clock.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

_MOMENTUM, _DECAY = 0.95, 0.01
_NEWTON_SCHULZ = 5 * [(3.4445, -4.7750, 2.0315)]


class Optimiser:
    """Updates an fp32 master copy of each weight, and copies it back to the bf16 weight.

    Muon (Jordan 2024) orthogonalises the updates of hidden matrices, with a step size matched to AdamW's; the results
    equal torch.optim.Muon's, computed for the same matrices of all layers at once. Embeddings, norms, routers and
    the factors of an adapter take AdamW. A step never waits for the device.
    """

    def __init__(self, named: Iterable[tuple[str, nn.Parameter]], rates: tuple[float, float]) -> None:
        """named: the weights to train, by name. rates: peak learning rates of Muon and of AdamW."""
        self._peaks = rates
        self._all: list[nn.Parameter] = []
        self._rest: list[tuple[nn.Parameter, nn.Parameter]] = []
        alike: dict[tuple[str, torch.Size], list[nn.Parameter]] = {}
        for name, weight in named:
            self._all.append(weight)
            if _is_hidden(name, weight):
                alike.setdefault((re.sub(r"\d+", "", name), weight.shape[-2:]), []).append(weight)
            else:
                self._rest.append((weight, nn.Parameter(weight.detach().float().clone())))
        self._stacks = [_Stack.of(weights) for weights in alike.values()]
        masters = [master for _, master in self._rest]
        self._adam = torch.optim.AdamW(masters, lr=rates[1], betas=(0.9, 0.95), weight_decay=0.0, fused=True)

    def step(self, share: float) -> Tensor:
        """Update the weights from their gradients at `share` of the peak rates, and clear the gradients.

        The gradients are clipped to a norm of 1. Returns their norm before that, a scalar on their device.
        """
        norm = torch.nn.utils.get_total_norm([w.grad for w in self._all if w.grad is not None]).float()
        scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
        for stack in self._stacks:
            stack.step(self._peaks[0] * share, scale)
        for weight, master in self._rest:
            master.grad = None if weight.grad is None else weight.grad.float() * scale
        self._adam.param_groups[0]["lr"] = self._peaks[1] * share
        self._adam.step()
        with torch.no_grad():
            torch._foreach_copy_([weight for weight, _ in self._rest], [master for _, master in self._rest])
        for weight in self._all:
            weight.grad = None
        return norm

    def state(self) -> dict[str, Tensor]:
        """The masters and the state of both optimisers, as named tensors for `restore`."""
        found: dict[str, Tensor] = {}
        for number, stack in enumerate(self._stacks):
            found |= {f"muon.{number}.master": stack.master, f"muon.{number}.momentum": stack.momentum}
        for number, (_, master) in enumerate(self._rest):
            found[f"adam.{number}.master"] = master.detach()
            found |= {f"adam.{number}.state.{k}": v for k, v in self._adam.state[master].items()}
        return found

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Set masters, weights and optimiser state from the tensors that `state` returned."""
        with torch.no_grad():
            for number, stack in enumerate(self._stacks):
                stack.master.copy_(state[f"muon.{number}.master"])
                stack.momentum.copy_(state[f"muon.{number}.momentum"])
                stack.copy_back()
            for number, (weight, master) in enumerate(self._rest):
                master.copy_(state[f"adam.{number}.master"])
                weight.copy_(master)
                start = f"adam.{number}.state."
                found = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
                self._adam.state[master] = {k: v.to(master.device) for k, v in found.items()}


@dataclass(frozen=True, slots=True)
class _Stack:
    """The same matrix of every layer, and of every expert, which one update changes together.

    weights: each [out, in], or [experts, out, in]. master, momentum: fp32 [matrices, out, in].
    """

    weights: Sequence[nn.Parameter]
    master: Tensor
    momentum: Tensor

    @classmethod
    def of(cls, weights: Sequence[nn.Parameter]) -> "_Stack":
        master = torch.cat(_matrices([weight.detach() for weight in weights])).float()
        return cls(weights, master, torch.zeros_like(master))

    @torch.no_grad()
    def step(self, rate: float, scale: Tensor) -> None:
        """Change the weights by their gradients times `scale`, unless none of them has a gradient."""
        if all(weight.grad is None for weight in self.weights):
            return
        gradients = [torch.zeros_like(w) if w.grad is None else w.grad for w in self.weights]
        gradient = torch.cat(_matrices(gradients)).float() * scale
        self.momentum.lerp_(gradient, 1 - _MOMENTUM)
        update = orthogonal(gradient.lerp(self.momentum, _MOMENTUM))
        longest = max(self.master.shape[-2:])
        self.master.mul_(1 - rate * _DECAY).add_(update, alpha=-rate * 0.2 * longest**0.5)
        self.copy_back()

    def copy_back(self) -> None:
        """Set the weights from their masters."""
        matrices = _matrices([weight.detach() for weight in self.weights])
        torch._foreach_copy_(matrices, list(torch.split(self.master, [len(part) for part in matrices])))


def orthogonal(matrices: Tensor) -> Tensor:
    """The matrices [N, out, in], each with singular values near 1, by Newton-Schulz iterations in bf16."""
    found = matrices.bfloat16()
    if tall := found.shape[-2] > found.shape[-1]:
        found = found.mT
    found = found / found.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for a, b, c in _NEWTON_SCHULZ:
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.mT if tall else found


def _matrices(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Each of `tensors` as [matrices, out, in]."""
    return [tensor.view(-1, *tensor.shape[-2:]) for tensor in tensors]


def _is_hidden(name: str, weight: Tensor) -> bool:
    """Return whether `weight` is a matrix of a hidden layer, or a stack of experts' matrices, which Muon updates."""
    others = ("embed", "lm_head", "router", "lora_")
    return weight.ndim in (2, 3) and not any(part in name for part in others)
