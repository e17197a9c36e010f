"""The optimiser: Muon for hidden matrices and AdamW for the rest, on fp32 copies of the bf16 weights.

Knows parameters and gradients; knows no data, no loss and no clock.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn


class Optimiser:
    """Updates an fp32 master copy of each weight, and copies it back to the bf16 weight.

    Muon (Jordan 2024, torch.optim.Muon) orthogonalises the updates of hidden matrices, with a step size matched to
    AdamW's. A stack of experts [experts, out, in] counts as so many matrices. Embeddings, norms, routers and the
    factors of an adapter take AdamW.
    """

    def __init__(self, named: Iterable[tuple[str, nn.Parameter]], rates: tuple[float, float]) -> None:
        """named: the weights to train, by name. rates: peak learning rates of Muon and of AdamW."""
        self._weights = list(named)
        self._pairs = [pair for name, weight in self._weights for pair in _masters(name, weight)]
        self._named = dict(self._weights)
        hidden = [m for name, m, _ in self._pairs if _is_hidden(name, m)]
        chosen = set(map(id, hidden))
        rest = [m for _, m, _ in self._pairs if id(m) not in chosen]
        adam = torch.optim.AdamW(rest, lr=rates[1], betas=(0.9, 0.95), weight_decay=0.0, fused=True)
        self._parts: list[torch.optim.Optimizer] = [adam]
        if hidden:
            self._parts.append(
                torch.optim.Muon(hidden, lr=rates[0], weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
            )
        self._peaks = [rates[1], rates[0]]

    def step(self, share: float) -> float:
        """Update the weights from their gradients at `share` of the peak rates, and clear the gradients.

        The gradients are clipped to a norm of 1. Returns their norm before that.
        """
        gradients = [w.grad for _, w in self._weights if w.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        scale = float(min(1.0, 1.0 / (float(norm) + 1e-6)))
        for name, master, number in self._pairs:
            grad = self._at(name, number, "grad")
            master.grad = None if grad is None else grad.float() * scale
        for part, peak in zip(self._parts, self._peaks, strict=False):
            for group in part.param_groups:
                group["lr"] = peak * share
            part.step()
        with torch.no_grad():
            for name, master, number in self._pairs:
                self._at(name, number, "data").copy_(master)
        for _, weight in self._weights:
            weight.grad = None
        return float(norm)

    def state(self) -> dict[str, Tensor]:
        """The masters and the state of both optimisers, as named tensors for `restore`."""
        found = {f"master.{n}": master.detach() for n, (_, master, _) in enumerate(self._pairs)}
        for slot, part, weight in self._slots():
            found |= {f"{slot}.{name}": value for name, value in part.state[weight].items()}
        return found

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Set masters, weights and optimiser state from what `state` returned."""
        with torch.no_grad():
            for n, (name, master, number) in enumerate(self._pairs):
                master.copy_(state[f"master.{n}"])
                self._at(name, number, "data").copy_(master)
        for slot, part, weight in self._slots():
            start = f"{slot}."
            part.state[weight] = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}

    def _slots(self) -> Iterator[tuple[str, torch.optim.Optimizer, Tensor]]:
        for p, part in enumerate(self._parts):
            for w, weight in enumerate(part.param_groups[0]["params"]):
                yield f"part.{p}.{w}", part, weight

    def _at(self, name: str, number: int | None, what: str) -> Any:
        whole: Tensor | None = getattr(self._named[name], what)
        return whole if number is None or whole is None else whole[number]


def _masters(name: str, weight: nn.Parameter) -> Iterator[tuple[str, nn.Parameter, int | None]]:
    """(name, fp32 master, number) of a weight, or of each expert in a stack; a whole weight has no number."""
    if weight.ndim == 3:
        for number, matrix in enumerate(weight.detach()):
            yield name, nn.Parameter(matrix.float().clone()), number
    else:
        yield name, nn.Parameter(weight.detach().float().clone()), None


def _is_hidden(name: str, master: Tensor) -> bool:
    """Whether `master` is a whole matrix of a hidden layer, which Muon updates."""
    others = ("embed", "lm_head", "router", "lora_")
    return master.ndim == 2 and not any(part in name for part in others)
