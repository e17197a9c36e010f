"""The networks that tests have taught to count and to spell, stored, because teaching takes a minute.

    python -m tests.model.stored

teaches them again and writes tests/model/data/.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from dg_lsp.training.shape import embedded_config, fresh_network
from tests.model.spelled import HIDDEN, LAYERS, spelled_text, train
from tests.model.tiny import tiny_config, tiny_network

DATA = Path(__file__).parent / "data"


def counting() -> Any:
    """Return the network that `teach_counting` gave."""
    return _filled(tiny_network(0, config=tiny_config(repeats=1)), "counting")


def spelling() -> Any:
    """Return the network that knows the text of tests/model/spelled.py."""
    config = embedded_config(spelled_text().vocabulary, HIDDEN, LAYERS)
    return _filled(fresh_network(config, 0, torch.float32), "spelling")


def _filled(network: Any, name: str) -> Any:
    """Put the stored weights into `network`."""
    known = dict(network.named_parameters(remove_duplicate=False))
    stored = load_file(DATA / f"{name}.safetensors")
    assert stored.keys() <= known.keys()
    with torch.no_grad():
        for part, weight in stored.items():
            known[part].copy_(weight)
    return network.eval()


def _store(network: Any, name: str, kind: torch.dtype) -> None:
    DATA.mkdir(exist_ok=True)
    weights = {n: w.detach().to(kind) for n, w in network.named_parameters() if "vision" not in n}
    save_file(weights, DATA / f"{name}.safetensors")


def main() -> None:
    from tests.model.conftest import teach_counting  # noqa: PLC0415 - which imports this module

    _store(teach_counting(), "counting", torch.float32)
    network, loss = train(spelled_text(), 0)
    print(f"spelling: {loss:.3f} nats a token at the end")
    assert loss < 0.4, "the network did not learn to spell"
    _store(network, "spelling", torch.float16)


if __name__ == "__main__":
    main()
