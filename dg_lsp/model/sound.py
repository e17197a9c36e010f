"""Checks of what a checkpoint's files say, before anything is made of them: sizes, kinds, names of other files.

Whatever else its files make a library raise becomes a CheckpointError here. Loads no weights.
"""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from dg_lsp.checkpoints import ABOUT, FETCH_AGAIN, CheckpointError, read_json
from dg_lsp.model.judge import SITUATIONS
from dg_lsp.model.manifest import JUDGE, LOADED

_LAYERS, _GREATEST = (
    1_000,
    1 << 31,
)  # layers of a network, and numbers in a config, beyond which it is damaged
# Entries that count something of which there is one at least.
_COUNTED = {
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
}
_SLOTS = 4_096  # of a canvas
_INDEX, _ADAPTER = ".index.json", "adapter_config.json"
_log = logging.getLogger(__name__)


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Raise CheckpointError for whatever the files of the checkpoint in `path` make the block raise."""
    try:
        yield
    except CheckpointError:
        raise
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise CheckpointError(f"{path} does not fit in memory; name another with --checkpoint") from error
    except Exception as error:
        # It may be a fault of ours, so its place is logged.
        _log.debug("%s cannot be loaded", path, exc_info=True)
        raise _damaged(path, error) from error
    except BaseException as error:
        # What a library in Rust raises where it meets a fault of its own is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise _damaged(path, error) from error


def check_files(path: Path) -> None:
    """Raise CheckpointError for a file of the checkpoint in `path` that is none, or that leads to other ones.

    An index names files beside it only, and a folder with an adapter would be loaded from wherever that says.
    """
    if path.is_file():
        return
    for file in sorted(path.iterdir()):
        if file.suffix in LOADED and not file.is_file():
            raise CheckpointError(f"{file} is no regular file; {FETCH_AGAIN}")
        if file.name == _ADAPTER:
            raise CheckpointError(f"{path} holds an adapter and no whole network; {FETCH_AGAIN}")
        if file.name.endswith(_INDEX):
            names = read_json(file).get("weight_map")
            if not isinstance(names, dict) or not all(map(is_plain, names.values())):
                raise CheckpointError(f"{file} names other files than those beside it; {FETCH_AGAIN}")
        elif file.name == "generation_config.json":
            read_json(file)


def is_plain(name: object) -> bool:
    """Return whether `name` is that of a file in a folder, and leads nowhere else."""
    return isinstance(name, str) and name not in ("", ".", "..") and not {"/", "\\", "\0"} & {*name}


def check_numbers(path: Path, value: Any, name: str = "") -> None:
    """Raise CheckpointError for a number in the config `value` of `path` that no network has."""
    if isinstance(value, Mapping):
        for own, one in value.items():
            check_numbers(path, one, str(own))
    elif isinstance(value, list | tuple):
        for one in value:
            check_numbers(path, one, name)
    elif isinstance(value, int | float):
        most: float
        if isinstance(value, int) or name in _COUNTED or name.endswith("layers"):
            most = _LAYERS if name.endswith("layers") else _GREATEST
        else:
            most = sys.float_info.max  # such as the epsilon of a norm that is to do nothing
        least = 1 if name in _COUNTED else -most
        if not least <= value <= most:  # NaN is in no range, infinity neither
            raise CheckpointError(f"{path} has {name} {value}, not {least:,} to {most:,}; {FETCH_AGAIN}")


def check_size(path: Path, config: Any, size: int) -> None:
    """Raise CheckpointError if the network of `config` has more weights than `size` bytes of files in `path` can hold.

    Memory would be taken for all of them before one is found to be missing.
    """
    whole = config.to_dict()
    # A GGUF file has no vision tower, whatever a config says by default.
    vision = whole.get("vision_config") if path.is_dir() else None
    parts = [part for part in (whole, whole.get("text_config"), vision) if part]
    wanted = sum(map(_least, parts))
    if wanted > size * 4:  # of two bits each
        raise CheckpointError(
            f"{path} has {size:,} bytes, and its config asks for {wanted:,} weights; {FETCH_AGAIN}"
        )


def check_about(path: Path, about: Mapping[str, Any]) -> None:
    """Raise CheckpointError for an entry of `about`, the dg_lsp.json in `path`, of the wrong kind."""
    lengths, most = about.get("canvas_lengths", [1]), about.get("max_prefix_tokens", 1)
    good = {
        "canvas_lengths": isinstance(lengths, list) and lengths and all(_counts(n, _SLOTS) for n in lengths),
        "max_prefix_tokens": _counts(most, _GREATEST),
        "prompt": isinstance(about.get("prompt", ""), str),
        "languages": _are_texts(about.get("languages", [])),
        "denoises": isinstance(about.get("denoises", True), bool),
    }
    if wrong := [name for name, fits in good.items() if not fits]:
        raise CheckpointError(
            f"the entry {wrong[0]} of {path / ABOUT} has a value that is not understood; {FETCH_AGAIN}"
        )


def check_judge(path: Path, judge: Mapping[str, Any]) -> None:
    """Raise CheckpointError if `judge`, the judge.json in `path`, is not a table of numbers for each situation."""
    tables = [judge.get(name) for name in SITUATIONS]
    if not all(isinstance(table, dict) and all(map(_is_finite, table.values())) for table in tables):
        raise CheckpointError(
            f"{path / JUDGE} holds other than numbers for {', '.join(SITUATIONS)}; {FETCH_AGAIN}"
        )


def _least(part: Mapping[str, Any]) -> int:
    """Return how many weights a network of the config `part` has at least."""

    def number(name: str) -> int:
        value = part.get(name)
        return value if type(value) is int else 0

    inner = number("intermediate_size") + number("num_experts") * number("moe_intermediate_size")
    layer = 2 * number("num_attention_heads") * number("head_dim") + 3 * inner
    return number("hidden_size") * (number("vocab_size") + number("num_hidden_layers") * layer)


def _counts(value: object, most: int) -> bool:
    return type(value) is int and 0 < value <= most


def _is_finite(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < _GREATEST  # type: ignore[arg-type]


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _damaged(path: Path, error: BaseException) -> CheckpointError:
    first = next(iter(str(error).strip().splitlines()), "")[:200] or type(error).__name__
    return CheckpointError(f"{path} cannot be loaded: {first}; {FETCH_AGAIN}")
