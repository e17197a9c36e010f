"""Import transformers, and make its networks, without torch's compiler and distributed tensors.

They are two fifths of all that a start would import, and nothing in an engine is compiled or distributed. transformers
marks functions for the compiler when it is imported; torch does so where a tensor without numbers is computed with.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from accelerate import init_empty_weights
from transformers.initialization import no_init_weights

_COMPILER = "torch._dynamo"
_IMPORTED = ("transformers.modeling_utils", "transformers.masking_utils")


def import_transformers() -> None:
    """Import the base of transformers' networks without what no engine uses.

    A version that needs more of it than marks is imported as usual, by the module that uses it.
    """
    if sys.modules.keys() & {_COMPILER, *_IMPORTED}:
        return
    available = torch.distributed.is_available
    torch.distributed.is_available = lambda: False
    try:
        with without_compiler():
            for name in _IMPORTED:
                importlib.import_module(name)
    except (ImportError, AttributeError):
        for name in [name for name in sys.modules if name.split(".")[0] == "transformers"]:
            del sys.modules[name]
    finally:
        torch.distributed.is_available = available


@contextmanager
def without_compiler() -> Iterator[None]:
    """Let functions be marked for the compiler without it, unless it has been imported."""
    if _COMPILER in sys.modules:
        yield
        return
    sys.modules[_COMPILER] = torch._dynamo = _Marks(_COMPILER)
    try:
        yield
    finally:
        del sys.modules[_COMPILER], torch._dynamo


@contextmanager
def without_weights() -> Iterator[None]:
    """Make networks whose parameters have a shape and no numbers; their buffers have theirs."""
    with init_empty_weights(include_buffers=False), no_init_weights():
        yield


class _Marks(ModuleType):
    """The compiler with marks, such as `disable`, that do nothing; its submodules are real ones."""

    __path__ = [str(Path(torch.__file__).with_name("_dynamo"))]  # noqa: RUF012 - as ModuleType has it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _unmarked


def _unmarked(function: Callable[..., Any] | None = None, *_: Any, **__: Any) -> Any:
    """Return `function`; without one, the decorator that does so."""
    return _unmarked if function is None else function
